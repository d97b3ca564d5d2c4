//! `dewar bench`: what protection costs here.

use crate::{calls, revoke};
use anyhow::Context as _;
use bench::{
    calls::Subject,
    comparison::{Comparison, Medium},
    config::{Config, Kind, WORKSPACE},
    peers, progress,
    runner::Plan,
    sample,
    syscalls::Syscalls,
    table::{self, Style},
    worker::Worker,
    workload::Workload,
};
use cli::{
    args::bench::{MeasureArgs, What},
    output, program,
};
use std::{env, ffi::OsString};

/// Carries out `dewar bench`.
pub(crate) fn run(what: What) -> anyhow::Result<()> {
    match what {
        What::Build(build) => {
            let workload = match build.command {
                command if command.is_empty() => Workload::sample(build.jobs),
                command => Workload::custom(command, build.undo.map_or_else(Vec::new, shell)),
            };
            compare(workload, &build.measure)
        }
        What::Syscalls(measure) => syscalls(&measure),
        What::Walk(measure) => compare(Workload::walk(worker()?), &measure),
        What::Start(measure) => compare(Workload::start(), &measure),
        What::Plugin(_) => Err(program::become_helper("dewar-plugin")),
        What::Ipc(args) => calls::run(Subject::Calls, &args),
        What::Decision(args) => calls::run(Subject::Decisions, &args),
        What::Revoke(args) => revoke::run(&args),
        What::Sample { directory } => sample::write(&directory)
            .with_context(|| format!("cannot write the sample to `{}`", directory.display())),
    }
}

fn shell(command: OsString) -> Vec<OsString> {
    vec!["sh".into(), "-c".into(), command]
}

fn worker() -> anyhow::Result<Worker> {
    let program = env::current_exe().context("cannot tell which program this is")?;
    Ok(Worker { program, arguments: vec!["worker".into()] })
}

/// Dewar with these flags, on the workspace.
fn dewar(name: &str, kind: Kind, flags: &[&str], description: &str) -> anyhow::Result<Config> {
    let program = program::beside("dewar")?;
    let program = program.to_str().context("the path of this program is not Unicode")?;
    let prefix = [&[program, "run", "--workspace", WORKSPACE], flags, &["--"]].concat();
    Ok(Config::new(name, kind, &prefix, description))
}

/// Native, and Dewar in every configuration that is worth a row.
fn configs(measure: &MeasureArgs) -> anyhow::Result<Vec<Config>> {
    let all = ["--mode", "all"];
    let only = |manager| [&all[..], &["--enforce", manager]].concat();
    let mut configs = vec![
        Config::native(),
        dewar("base", Kind::Base, &only("off"), "same launch, same interposition, no decisions")?,
        dewar("dewar all", Kind::Dewar, &all, "every open and exec decided")?,
        dewar("dewar fast", Kind::Dewar, &["--mode", "fast"], "reads left to the envelope")?,
        dewar("only files", Kind::Dewar, &only("files"), "the other object managers pass")?,
        dewar("only processes", Kind::Dewar, &only("processes"), "the other object managers pass")?,
        dewar("only sockets", Kind::Dewar, &only("sockets"), "the other object managers pass")?,
    ];
    if !measure.no_peers {
        configs.extend(peers::found());
    }
    Ok(configs)
}

fn media(measure: &MeasureArgs) -> Vec<Medium> {
    if measure.no_disk { vec![Medium::memory()] } else { vec![Medium::disk(), Medium::memory()] }
}

fn plan(measure: &MeasureArgs) -> Plan {
    Plan { rounds: measure.rounds as usize, ..Plan::default() }
}

fn compare(workload: Workload, measure: &MeasureArgs) -> anyhow::Result<()> {
    let comparison = Comparison {
        workload,
        configs: configs(measure)?,
        media: media(measure),
        plan: plan(measure),
    };
    let report = comparison.run(&mut progress::on_terminal());
    progress::clear();
    let report = report?;
    output::report(&measure.show, &report, |markdown| {
        table::comparison(&report, Style::of(markdown))
    })?;
    anyhow::ensure!(report.rows.iter().any(|row| row.figures.is_ok()), "nothing could be measured");
    Ok(())
}

/// Profiles with a second domain: one that nobody enters, and one that what is measured enters, so that every process has
/// a label of its own to be found.
const DOMAINS: [(&str, &str, &str); 2] = [
    (
        "dewar, two domains",
        "/usr/bin/other",
        "as `dewar all`, in a policy with two domains, all in one",
    ),
    (
        "dewar, labelled processes",
        "${workspace}/worker",
        "as `dewar all`, with processes in two domains",
    ),
];

fn syscalls(measure: &MeasureArgs) -> anyhow::Result<()> {
    let profiles = tempfile::tempdir()?;
    let mut configs = configs(measure)?;
    configs.retain(|config| config.kind != Kind::Peer);
    for (name, program, what) in DOMAINS {
        let file = profiles.path().join(format!("{name}.toml"));
        std::fs::write(
            &file,
            format!("extends = 'workspace'\n[domains.other]\nexec = ['{program}']\n"),
        )?;
        let profile = file.to_str().context("the temporary directory is not Unicode")?;
        configs.push(dewar(name, Kind::Dewar, &["--mode", "all", "-p", profile], what)?);
    }
    let benchmark =
        Syscalls { configs, worker: worker()?, medium: Medium::memory(), plan: plan(measure) };
    let report = benchmark.run(&mut progress::on_terminal());
    progress::clear();
    let report = report?;
    output::report(&measure.show, &report, |markdown| report.table(Style::of(markdown)))
}
