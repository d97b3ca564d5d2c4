//! The small Dewar that the tests start: everything that a plan, a JSON object, asks for.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use confine::launch::{
    AccessFs, CommandStatus, Envelope, Filter, Inherited, LaunchSpec, Limits, Namespaces, View,
    enter_view, start,
};
use confine::layers::Layers;
use serde_json::Value;

const ALLOW: libc::sock_filter =
    libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };

/// Runs the command in a sandbox, and ends as it ends.
pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ! {
    let inherited = Inherited::capture();
    let plan = arguments.next().and_then(|text| text.into_string().ok()).expect("a plan");
    let plan: Value = serde_json::from_str(&plan).expect("a plan in JSON");
    let mut spec = spec(&plan, arguments.collect(), inherited);
    if plan["degrade"] == true {
        degrade(&mut spec, &Layers::probe());
    }
    match run(&plan, &spec) {
        Ok(outcome) => outcome.leave(),
        Err(error) => {
            eprintln!("dewar: {error}");
            std::process::exit(125)
        }
    }
}

/// Takes out of `spec` the namespaces that this machine lacks, and says so.
fn degrade(spec: &mut LaunchSpec, layers: &Layers) {
    let asked = spec.namespaces.names();
    spec.namespaces = layers.namespaces(spec.namespaces);
    let kept = spec.namespaces.names();
    for layer in asked.into_iter().filter(|name| !kept.contains(name)) {
        eprintln!("without {layer}");
    }
    if !spec.namespaces.mount {
        spec.view = View::default();
    }
}

fn run(plan: &Value, spec: &LaunchSpec) -> Result<CommandStatus, Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let entered = enter_view(spec)?;
    let entered_after = begun.elapsed();
    if plan["threads"] == true {
        std::thread::spawn(|| std::thread::sleep(Duration::from_secs(60)));
    }
    let filter = Filter { program: &[ALLOW], flags: 0 };
    let mut started = start(spec, &entered, &filter)?;
    let _listener: OwnedFd = started.listener;
    let started_after = begun.elapsed();
    if plan["pids"] == true {
        eprintln!("command {}", started.command.as_raw_pid());
    }
    started.sandbox.release()?;
    started.sandbox.let_go_of_streams()?;
    let outcome = started.sandbox.wait()?;
    if plan["times"] == true {
        eprintln!("{entered_after:?} {started_after:?} {:?}", begun.elapsed());
    }
    if let CommandStatus::NotExecuted(errno) = outcome {
        eprintln!("dewar: cannot execute {:?}: {errno}", spec.command[0]);
    }
    Ok(outcome)
}

fn spec(plan: &Value, command: Vec<OsString>, inherited: Inherited) -> LaunchSpec {
    let mut namespaces = Namespaces::all(plan["network"] != true);
    if plan["namespaces"] == "none" {
        namespaces = Namespaces::NONE;
    }
    if plan["user"] == true {
        namespaces.user = true;
    }
    if plan["pid"] == false {
        namespaces.pid = false;
    }
    LaunchSpec {
        command,
        environment: std::env::vars_os().collect(),
        cwd: plan["cwd"].as_str().map_or_else(|| std::env::current_dir().expect("cwd"), Into::into),
        inherited,
        namespaces,
        view: view(&plan["view"]),
        envelope: (plan["envelope"] == true).then(envelope),
        capabilities: plan["capabilities"].as_u64().unwrap_or(0),
        limits: limits(&plan["limits"]),
    }
}

fn paths(list: &Value) -> Vec<PathBuf> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from).collect()
}

fn view(plan: &Value) -> View {
    View {
        private_bytes: plan["private_bytes"].as_u64(),
        private_tmp: plan["private_tmp"] == true,
        absent: paths(&plan["absent"]),
        keep: paths(&plan["keep"]),
        ways: paths(&plan["ways"]),
        denied: paths(&plan["denied"]),
        hollow: paths(&plan["hollow"]),
        read_only: paths(&plan["read_only"]),
        hosts: plan["hosts"].as_str().map(Into::into),
    }
}

/// Reading everywhere, writing to devices only.
fn envelope() -> Envelope {
    let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg;
    Envelope {
        handled_fs: read | write,
        rules: vec![("/".into(), read), ("/dev".into(), AccessFs::WriteFile | AccessFs::Truncate)],
        tcp_bind: Some(Vec::new()),
        tcp_connect: Some(Vec::new()),
        scope_abstract_unix: true,
        scope_signal: true,
    }
}

fn limits(plan: &Value) -> Limits {
    Limits {
        core_bytes: None,
        memory_bytes: plan["memory"].as_u64(),
        processes: plan["processes"].as_u64(),
        cpus: plan["cpus"].as_f64(),
        file_bytes: plan["file"].as_u64(),
        open_files: plan["open_files"].as_u64(),
        time: plan["time_ms"].as_u64().map(Duration::from_millis),
    }
}
