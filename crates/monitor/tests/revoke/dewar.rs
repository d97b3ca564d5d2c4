//! The small Dewar that the tests start.

use confine::launch::{Inherited, Namespaces};
use confine::{LaunchRequest, Mode, layers::Layers};
use monitor::{Control, Enforce, Job, RevokeMode, Trail};
use profile::{AmendedObject, Amendment, AmendmentKind, Compiled, Documents, Source, Variables};
use security_server::Server;
use serde_json::{Value, json};
use std::{
    ffi::OsString,
    fs::File,
    io::Write as _,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// `DIRECTORY toggle COMMAND…`: runs the command, and changes to and fro between the two profiles
/// until it ends. Writes every decision to `DIRECTORY/audit`, and every change with its time to
/// `DIRECTORY/changes`, a line each.
///
/// `DIRECTORY MANNER COMMAND…`: runs the command under `DIRECTORY/before.toml`, and when
/// `DIRECTORY/ready` is there under `DIRECTORY/after.toml`. Writes `DIRECTORY/receipt.json`, then
/// `DIRECTORY/changed`. Meanwhile, as somebody outside, it writes what `DIRECTORY/rewrite`
/// holds into `DIRECTORY/area`, at 8, again and again.
pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ! {
    let inherited = Inherited::capture();
    let directory = arguments.next().expect("a directory");
    let directory = Path::new(&directory).to_owned();
    let mode = arguments.next().and_then(|it| it.into_string().ok()).expect("a revoke mode");
    let toggles = mode == "toggle";
    let mode = if toggles {
        RevokeMode::Repair
    } else {
        serde_json::from_str(&mode).expect("a revoke mode")
    };
    let mut before = compile(&directory, "before.toml", &[]);
    let all = Amendment::new(AmendmentKind::Revoke, None, AmendedObject::All);
    let after = match directory.join("everything").exists() {
        true => compile(&directory, "before.toml", &[all]),
        false => compile(&directory, "after.toml", &[]),
    };
    let booleans = Booleans::read(&directory);
    if let Some((from, to)) = booleans.as_ref().and_then(|it| it.without.as_ref()) {
        assert!(before.cil.contains(from), "{from}: {}", before.cil);
        before.cil = before.cil.replace(from, to);
    }
    let added = std::fs::read_to_string(directory.join("added.cil")).unwrap_or_default();
    let files = [("policy", &before.cil), ("added", &added)];
    let server = Arc::new(Server::from_cil(&files).expect("a policy"));
    let changing = Arc::clone(&server);
    let before_cil = before.cil.clone();
    let audit = toggles.then(|| File::create(directory.join("audit")).expect("an audit trail"));
    let (home, done) = (directory.clone(), directory.clone());
    let started = move |control: Control| {
        std::thread::spawn(move || {
            if toggles {
                return toggle(&control, &changing, [&after.cil, &before_cil], &home);
            }
            while !home.join("ready").exists() {
                std::thread::sleep(Duration::from_millis(2));
            }
            meddle(&home);
            let receipt = match &booleans {
                Some(booleans) => booleans.set(&control, &changing, mode),
                None => change(&control, &changing, &after.cil, mode),
            };
            std::fs::write(home.join("receipt.json"), receipt.to_string()).expect("write");
            std::fs::write(home.join("changed"), "").expect("write");
        });
    };
    let layers = Layers::probe();
    let offline = before.domains.iter().all(profile::Domain::is_offline);
    let command = (arguments.collect(), directory.clone());
    let request = LaunchRequest {
        environment: before.environment.apply(std::env::vars_os()).0.into_iter().collect(),
        mode: if before.mode == profile::Mode::Fast { Mode::Fast } else { Mode::All },
        ..LaunchRequest::new(command, inherited, &layers, Namespaces::all(offline))
    };
    let job = Job {
        request,
        workspace: directory,
        enforce: Enforce::ALL,
        audit: audit
            .map(|file| Trail { sink: Box::new(file), everything: true })
            .into_iter()
            .collect(),
        watch: None,
        ask: None,
        account: false,
        started: Some(Box::new(started)),
    };
    match monitor::run(job, server) {
        Ok(report) => {
            // A change that has ended the run still says what it has done.
            let told = || done.join("changed").exists() || !done.join("ready").exists();
            for _ in 0..2_000 {
                if told() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            report.outcome.leave()
        }
        Err(error) => {
            eprintln!("dewar: {error}");
            std::process::exit(125)
        }
    }
}

/// What somebody outside does meanwhile, if the test asks for it.
fn meddle(home: &Path) {
    let (rewrite, changed) = (home.join("rewrite"), home.join("changed"));
    if let Ok(bytes) = std::fs::read(rewrite) {
        let area = File::options().write(true).open(home.join("area")).expect("the file");
        std::thread::spawn(move || {
            while !changed.exists() {
                for _ in 0..1000 {
                    area.write_all_at(&bytes, 8).expect("write");
                }
            }
        });
    }
}

fn toggle(control: &Control, server: &Server, policies: [&str; 2], directory: &Path) {
    let mut log = File::create(directory.join("changes")).expect("a log");
    for cil in policies.into_iter().cycle() {
        let policy = security_server::cil::compile(&[("policy", cil)]).expect("a policy");
        server.reload(policy).expect("load");
        let Ok(receipt) = control.apply(RevokeMode::Repair) else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs_f64();
        let line = json!({ "time": now, "seqno": receipt.seqno, "complete": receipt.complete, "holders": receipt.holders });
        writeln!(log, "{line}").expect("write");
    }
}

fn change(control: &Control, server: &Server, cil: &str, mode: RevokeMode) -> Value {
    let policy = || security_server::cil::compile(&[("policy", cil)]).expect("a policy");
    let proposed = server.fork();
    proposed.reload(policy()).expect("load");
    if let Err(error) = control.admits(&proposed, mode) {
        return json!({ "error": error.to_string() });
    }
    server.reload(policy()).expect("load");
    match control.apply(mode) {
        Ok(receipt) => json!(receipt),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// What to set while the command runs, as a daemon does it.
#[derive(serde::Deserialize)]
struct Booleans {
    set: Vec<(String, bool)>,
    without: Option<(String, String)>,
}

impl Booleans {
    fn read(directory: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(directory.join("booleans")).ok()?;
        Some(serde_json::from_str(&text).expect("booleans"))
    }

    fn set(&self, control: &Control, server: &Server, mode: RevokeMode) -> Value {
        let set: Vec<(&str, bool)> = self.set.iter().map(|(name, on)| (&**name, *on)).collect();
        let proposed = server.fork();
        proposed.set_booleans(&set).expect("booleans");
        // As the daemon asks: by what the run has told it.
        let kills = mode == RevokeMode::Kill;
        if let Err(why) = confine::admits(&control.settled(), &proposed, kills) {
            return json!({ "error": why.to_string() });
        }
        server.set_booleans(&set).expect("booleans");
        match control.apply(mode) {
            Ok(receipt) => json!(receipt),
            Err(error) => json!({ "error": format!("not before it was in force: {error}") }),
        }
    }
}

fn compile(directory: &Path, name: &str, amendments: &[Amendment]) -> Compiled {
    let source = Source::from_argument(&directory.join(name).to_string_lossy());
    let variables = Variables {
        workspace: directory.to_owned(),
        home: "/nonexistent".into(),
        tmp: "/tmp".into(),
        user: "me".into(),
        ..Variables::default()
    };
    let documents = Documents::read(&source).expect("a profile");
    documents.compile(&variables, &mut profile::unresolved, amendments).expect("a profile")
}
