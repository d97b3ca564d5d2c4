//! The small Dewar that the tests start.

use monitor::launch::{Inherited, Namespaces};
use monitor::{ABI, Control, Enforce, Job, Manner, Mode, Trail, layers::Layers};
use profile::{Compiled, Source, Variables, load};
use security_server::Server;
use std::{
    ffi::OsString,
    fs::File,
    io::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// `DIRECTORY toggle COMMAND…`: runs the command, and changes to and fro between the two profiles until it ends. Writes
/// every decision to `DIRECTORY/audit`, and every change with its time to `DIRECTORY/changes`, a line each.
///
/// `DIRECTORY MANNER COMMAND…`: runs the command under `DIRECTORY/before.toml`, and when `DIRECTORY/ready` is there
/// under `DIRECTORY/after.toml`. Writes `DIRECTORY/receipt.json`, then `DIRECTORY/changed`.
pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ! {
    let inherited = Inherited::capture();
    let directory = arguments.next().expect("a directory");
    let directory = Path::new(&directory).to_owned();
    let manner = arguments.next().and_then(|it| it.into_string().ok()).expect("a manner");
    let toggles = manner == "toggle";
    let manner =
        if toggles { Manner::Repair } else { serde_json::from_str(&manner).expect("a manner") };
    let before = compile(&directory, "before.toml");
    let after = compile(&directory, "after.toml");
    let server = Arc::new(Server::from_cil(&[("policy", &before.cil)]).expect("a policy"));
    let changing = Arc::clone(&server);
    let before_cil = before.cil.clone();
    let audit = toggles.then(|| File::create(directory.join("audit")).expect("an audit trail"));
    let home = directory.clone();
    let started = move |control: Control| {
        std::thread::spawn(move || {
            if toggles {
                return toggle(&control, &changing, [&after.cil, &before_cil], &home);
            }
            while !home.join("ready").exists() {
                std::thread::sleep(Duration::from_millis(2));
            }
            change(&control, &changing, &after.cil, manner, &home);
        });
    };
    let layers = Layers::probe();
    let offline = before.domains.iter().all(profile::Domain::is_offline);
    let job = Job {
        command: arguments.collect(),
        environment: before.environment.apply(std::env::vars_os()).into_iter().collect(),
        cwd: directory,
        inherited,
        mode: if before.mode == profile::Mode::Fast { Mode::Fast } else { Mode::All },
        limits: monitor::launch::Limits::default(),
        namespaces: layers.namespaces(Namespaces::all(offline)),
        landlock: Some(ABI::from(layers.landlock_version().cast_signed())),
        wait_killable: layers.has("wait-killable"),
        private_tmp: false,
        hosts: None,
        keep: 0,
        enforce: Enforce::ALL,
        strict: false,
        audit: audit
            .map(|file| Trail { sink: Box::new(file), everything: true })
            .into_iter()
            .collect(),
        started: Some(Box::new(started)),
    };
    match monitor::run(job, server) {
        Ok(report) => report.outcome.leave(),
        Err(error) => {
            eprintln!("dewar: {error}");
            std::process::exit(125)
        }
    }
}

fn toggle(control: &Control, server: &Server, policies: [&str; 2], directory: &Path) {
    let mut log = File::create(directory.join("changes")).expect("a log");
    for cil in policies.into_iter().cycle() {
        let policy = security_server::cil::compile(&[("policy", cil)]).expect("a policy");
        server.reload(policy).expect("load");
        let Ok(receipt) = control.apply(Manner::Repair) else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs_f64();
        let line = serde_json::json!({ "time": now, "seqno": receipt.seqno, "complete": receipt.complete, "holders": receipt.holders });
        writeln!(log, "{line}").expect("write");
    }
}

fn change(control: &Control, server: &Server, cil: &str, manner: Manner, directory: &Path) {
    let policy = security_server::cil::compile(&[("policy", cil)]).expect("a policy");
    server.reload(policy).expect("load");
    let answer = match control.apply(manner) {
        Ok(receipt) => serde_json::json!(receipt),
        Err(error) => serde_json::json!({ "error": error.to_string() }),
    };
    std::fs::write(directory.join("receipt.json"), answer.to_string()).expect("write");
    std::fs::write(directory.join("changed"), "").expect("write");
}

fn compile(directory: &Path, name: &str) -> Compiled {
    let source = Source::from_argument(&directory.join(name).to_string_lossy());
    let variables = Variables {
        workspace: directory.to_owned(),
        home: "/nonexistent".into(),
        tmp: "/tmp".into(),
        user: "me".into(),
        ..Variables::default()
    };
    load(&source, &variables, &mut |_| Ok(vec![])).expect("a profile")
}
