//! The `dewar` command.
mod run;
fn main() -> anyhow::Result<()> {
    let inherited = monitor::launch::Inherited::capture();
    let mut args: Vec<_> = std::env::args_os().skip(1).collect();
    let mut request = run::RunRequest { profile: "workspace".into(), mode: None, workspace: std::env::current_dir()?, stats: false, audit: None, allow_degraded: false, without: vec![], enforce: monitor::Enforce::ALL, json: false, command: vec![] };
    while let Some(a) = args.first().and_then(|a| a.to_str()).filter(|a| a.starts_with('-')).map(str::to_owned) {
        args.remove(0);
        match a.as_str() {
            "--" => break,
            "-p" => request.profile = args.remove(0).into_string().unwrap(),
            "--stats" => request.stats = true,
            "--json" => request.json = true,
            "--fast" => request.mode = Some(monitor::Mode::Fast),
            "--off" => request.enforce = monitor::Enforce::OFF,
            "--audit" => request.audit = Some(args.remove(0).into()),
            _ => panic!("{a}"),
        }
    }
    request.command = args;
    run::run(&request, inherited)?.leave()
}
