//! `dewar bench`: what protection costs here.

mod calls;
mod plugin;
mod revoke;
mod show;

use crate::output;
use anyhow::Context as _;
use bench::{
    calls::Subject,
    comparison::{Comparison, Medium},
    config::{Config, Kind, WORKSPACE},
    peers, progress,
    runner::Plan,
    sample,
    syscalls::Syscalls,
    table,
    worker::{Task, Worker},
    workload::Workload,
};
use clap::{Args, Subcommand};
use monitor::launch::Inherited;
use show::ShowArgs;
use std::{ffi::OsString, path::PathBuf};

const EXAMPLES: &str = "\
Examples:
  dewar bench build                         the sample application under every configuration
  dewar bench build --undo 'make clean' -- make
                                            a build of your own, in the working directory
  dewar bench syscalls                      single system calls, and the least of mediation
  dewar bench walk; dewar bench start       a walk over a tree of files; the start of `true`
  dewar bench plugin                        plugins: calls, kernels beside gcc, LuaJIT, CoD
  dewar bench ipc; dewar bench decision     calls between processes, and what checking them adds
  dewar bench revoke                        taking back what is open, mapped and connected
  dewar bench sample DIR                    write the sample application, to look at or to build

Configurations are run in turn, in an order shuffled anew each round; the first round is not
counted. Figures are medians; ratios compare runs of the same round.
Exit status: 0, or 125 if nothing could be measured.";

/// Measure what protection costs on this machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A build: native, interposed without decisions, under each mode, and under other tools found here
    Build(BuildArgs),
    /// Single system calls: native, the bare notification, under Dewar
    Syscalls(MeasureArgs),
    /// 48,000 times open, fstat, read, close, access, stat
    Walk(MeasureArgs),
    /// The start and end of `true`
    Start(MeasureArgs),
    /// Plugins: single operations, and kernels on every target beside gcc and LuaJIT
    Plugin(plugin::PluginArgs),
    /// Calls between two processes: without checks, checked, with client identification, in another's name
    Ipc(calls::CallArgs),
    /// What a decision adds to a call, by where it is found: hint, cache, security server
    Decision(calls::CallArgs),
    /// What taking back descriptors, mappings and connections costs, by their number
    Revoke(revoke::RevokeArgs),
    /// Write the sample application into a directory
    Sample {
        /// Where to; it is created if it does not exist
        directory: PathBuf,
    },
    /// Measure from inside a configuration
    #[command(hide = true)]
    Worker {
        /// What to measure
        task: Task,
    },
    /// Hold what is to be taken back
    #[command(hide = true)]
    Hold(revoke::HoldArgs),
    /// Take back once what a command holds
    #[command(hide = true)]
    RevokeOnce(revoke::OnceArgs),
}

#[derive(Debug, Args)]
struct BuildArgs {
    #[command(flatten)]
    measure: MeasureArgs,

    /// Jobs of `make`
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    jobs: usize,

    /// Undoes COMMAND before each run; run by the shell, natively, and not measured
    #[arg(long, value_name = "SHELL-COMMAND", requires = "command")]
    undo: Option<OsString>,

    /// A command to measure in the working directory instead of building the sample application
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct MeasureArgs {
    /// Measured rounds; one more comes first and is not counted
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Only native, base and Dewar itself, without other tools
    #[arg(long)]
    no_peers: bool,

    /// Only in memory, not on disk
    #[arg(long)]
    no_disk: bool,

    #[command(flatten)]
    show: ShowArgs,
}

/// Carries out `dewar bench`.
pub(crate) fn run(args: BenchArgs, inherited: Inherited) -> anyhow::Result<()> {
    match args.what {
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
        What::Plugin(args) => plugin::run(&args),
        What::Ipc(args) => calls::run(Subject::Calls, &args),
        What::Decision(args) => calls::run(Subject::Decisions, &args),
        What::Revoke(args) => revoke::run(&args),
        What::Hold(args) => revoke::hold(&args),
        What::RevokeOnce(args) => revoke::once(args, inherited)?.leave(),
        What::Sample { directory } => sample::write(&directory)
            .with_context(|| format!("cannot write the sample to `{}`", directory.display())),
        What::Worker { task } => Ok(output::print((task.run()? + "\n").as_bytes())?),
    }
}

fn shell(command: OsString) -> Vec<OsString> {
    vec!["sh".into(), "-c".into(), command]
}

fn worker() -> anyhow::Result<Worker> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    Ok(Worker { program, arguments: vec!["bench".into(), "worker".into()] })
}

/// Dewar with these flags, on the workspace.
fn dewar(name: &str, kind: Kind, flags: &[&str], description: &str) -> anyhow::Result<Config> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
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
    measure.show.show(&report, |style| table::comparison(&report, style))?;
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
    measure.show.show(&report, |style| report.table(style))
}
