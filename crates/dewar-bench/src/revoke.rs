//! `dewar bench revoke`.

use crate::show;
use anyhow::{Context as _, anyhow};
use bench::{
    held_resource::{DONE, FILE, HeldResource, READY, may_open_many},
    revocation::{COUNTS, Report, Sample},
};
use clap::Args;
use cli::args::bench::{MOST_HELD, RevokeArgs};
use confine::{
    LaunchRequest,
    launch::{Inherited, Namespaces},
    layers::Layers,
};
use monitor::{Control, Enforce, Job, RevokeMode};
use profile::{Compiled, Source, Variables};
use security_server::{Server, cil, policy::Policy};
use std::{
    io::{IsTerminal as _, stderr},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

/// Where a sandbox leaves what came of it, in its directory.
const RECEIPT: &str = "receipt";

const _: () = assert!(MOST_HELD as usize == COUNTS[COUNTS.len() - 1]);

/// One revocation, in a process of its own.
#[derive(Debug, Args)]
pub(crate) struct OnceArgs {
    /// The workspace
    directory: PathBuf,
    /// The port that may be connected to until then
    port: u16,
    /// What holds, and its arguments
    command: Vec<std::ffi::OsString>,
}

/// A process that holds what is to be taken back.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// What to hold
    holding: HeldResource,
    /// How many
    count: usize,
    /// Where connections go
    port: u16,
}

/// Measures, and prints what was asked for.
pub(crate) fn run(args: &RevokeArgs) -> anyhow::Result<()> {
    may_open_many()?;
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on this machine")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || accept_for_ever(&listener));
    let terminal = stderr().is_terminal();
    let progress = &mut |holding, count| {
        if terminal {
            eprint!("\r\x1b[Kmeasuring: {count} {holding}");
        }
    };
    let revoke = &mut |holding, count| {
        in_sandbox(holding, count, port).map_err(|error| format!("{error:#}"))
    };
    let report = Report::measure(args.rounds as usize, args.most as usize, revoke, progress);
    if terminal {
        eprint!("\r\x1b[K");
    }
    show::keep(&report.section(), &args.show)?;
    show::sheets(&[report.sheet()], &report, &args.show)?;
    if let Some(path) = &args.plot {
        cli::output_file::replace(path, report.plot()?.as_bytes())
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    Ok(())
}

/// Holds the other ends of connections.
fn accept_for_ever(listener: &TcpListener) {
    const MOST: usize = COUNTS[COUNTS.len() - 1];
    let mut peers = std::collections::VecDeque::new();
    for peer in listener.incoming().flatten() {
        peers.push_back(peer);
        if peers.len() > MOST {
            // Of a sandbox that has ended.
            peers.pop_front();
        }
    }
}

fn in_sandbox(holding: HeldResource, count: usize, port: u16) -> anyhow::Result<Sample> {
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    std::fs::write(directory.path().join(FILE), [0; 4096])?;
    let worker = directory.path().join("worker");
    let own = std::env::current_exe().context("cannot tell which program this is")?;
    std::fs::copy(&own, &worker).context("cannot put the worker into its directory")?;
    let mut command = Command::new(own);
    command.arg("revoke-once").arg(directory.path()).arg(port.to_string());
    command.arg("--").arg(&worker).args(["hold", holding.name()]);
    command.args([count.to_string(), port.to_string()]);
    command.current_dir(directory.path()).stdin(Stdio::null());
    let output = command.output().context("cannot start a sandbox")?;
    let said = std::fs::read_to_string(directory.path().join(RECEIPT)).unwrap_or_default();
    let sample = serde_json::from_str::<(Sample, usize)>(&said);
    let (sample, taken) = sample.map_err(|_| {
        let error = String::from_utf8_lossy(&output.stderr);
        let mut lines = said.lines().chain(error.lines());
        anyhow!("{}", lines.next().unwrap_or("nothing was taken back"))
    })?;
    Ok(Sample { complete: sample.complete && taken == count, ..sample })
}

/// Runs the command, takes back what it holds when it is ready, and prints what that took.
pub(crate) fn once(
    args: OnceArgs,
    inherited: Inherited,
) -> anyhow::Result<confine::launch::CommandStatus> {
    let OnceArgs { directory, port, command } = args;
    let connect = format!("[network]\nconnect = ['127.0.0.1:{port}']\n");
    let before = compile(&directory, &connect)?;
    let deny = format!(
        "[network]\nconnect = ['127.0.0.1:1']\n[files]\ndeny = ['${{workspace}}/{FILE}']\n"
    );
    let after = compile(&directory, &deny)?;
    let server = Arc::new(Server::from_cil(&[("policy", &before.cil)])?);
    let policy = cil::compile(&[("policy", &after.cil)])?;
    let changing = Arc::clone(&server);
    let place = directory.clone();
    let started = move |control: Control| {
        std::thread::spawn(move || {
            while !place.join(READY).exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            // Standard output is the command's alone by now.
            let line = take_back(&control, &changing, policy);
            let line = line.unwrap_or_else(|error| format!("{error:#}"));
            let _ = std::fs::write(place.join(RECEIPT), line);
            let _ = std::fs::write(place.join(DONE), "");
        });
    };
    let layers = Layers::probe();
    let namespaces = Namespaces::all(false);
    let request = LaunchRequest {
        environment: std::env::vars_os().collect(),
        ..LaunchRequest::new((command, directory.clone()), inherited, &layers, namespaces)
    };
    let job = Job {
        request,
        workspace: directory,
        enforce: Enforce::ALL,
        audit: Vec::new(),
        watch: None,
        ask: None,
        account: false,
        started: Some(Box::new(started)),
    };
    Ok(monitor::run(job, server)?.outcome)
}

/// Puts another policy in force; the sample and how many were taken back, as a line of JSON.
fn take_back(control: &Control, server: &Server, policy: Policy) -> anyhow::Result<String> {
    server.reload(policy)?;
    let receipt = control.apply(RevokeMode::Repair)?;
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let sample = Sample {
        prepared_us: micros(receipt.prepared),
        stopped_us: micros(receipt.stopped),
        took_us: micros(receipt.took),
        complete: receipt.complete,
    };
    Ok(serde_json::to_string(&(sample, receipt.holders.len()))?)
}

/// Carries out `dewar bench hold`.
pub(crate) fn hold(args: &HoldArgs) -> anyhow::Result<()> {
    may_open_many()?;
    let HoldArgs { holding, count, port } = args;
    holding.hold(*count, *port).with_context(|| format!("cannot hold {count} {holding}"))
}

fn compile(directory: &Path, lines: &str) -> anyhow::Result<Compiled> {
    let source = Source::Text {
        name: "revocation.toml".into(),
        text: format!("extends = 'workspace'\n{lines}"),
        directory: directory.to_owned(),
    };
    let variables = Variables {
        workspace: directory.to_owned(),
        home: "/nonexistent".into(),
        tmp: "/tmp".into(),
        ..Variables::default()
    };
    Ok(profile::load(&source, &variables, &mut profile::unresolved)?)
}
