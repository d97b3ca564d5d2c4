//! `dewar bench`: what protection costs here.

use crate::output;
use anyhow::Context as _;
use bench::{
    comparison::{Comparison, Medium},
    config::{Config, Kind, WORKSPACE},
    export, peers, progress,
    runner::Plan,
    syscalls::Syscalls,
    table::{self, Style},
    worker::{Task, Worker},
    workload::Workload,
};
use clap::{Args, Subcommand};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

const EXAMPLES: &str = "\
Examples:
  dewar bench build                      the sample application, on disk and in memory
  dewar bench build --runs 11 -- make    a build of your own, in this directory
  dewar bench syscalls --json raw.json   single system calls, every run kept

All configurations run in turn; the first round is not counted. Numbers are medians with their spread; percentages
are against the command alone, and against the same launch and interposition without decisions.";

/// Measure what protection costs on this machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    workload: Named,
}

#[derive(Debug, Subcommand)]
enum Named {
    /// A build: alone, without decisions, in each mode, with one object manager, under other tools found here
    Build(BuildArgs),
    /// A warm walk that only opens, stats and reads
    Walk(RunsArgs),
    /// The start and end of `true`
    Start(RunsArgs),
    /// Single system calls, with the floor of any notification
    Syscalls(RunsArgs),
    /// Does the work that is measured.
    #[command(hide = true)]
    Worker(WorkerArgs),
}

#[derive(Debug, Args)]
struct BuildArgs {
    #[command(flatten)]
    runs: RunsArgs,

    /// Jobs of `make` for the sample application
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    jobs: usize,

    /// Shell command that undoes COMMAND before each run, such as `make clean`
    #[arg(long, value_name = "SHELL", requires = "command")]
    prepare: Option<OsString>,

    /// A command to measure instead of building the sample application
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct RunsArgs {
    /// Rounds that are counted
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// Draw the table in Markdown
    #[arg(long)]
    markdown: bool,

    /// Write every single run to FILE as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct WorkerArgs {
    /// The task
    #[arg(value_name = "TASK", value_parser = task)]
    task: Task,
}

fn task(text: &str) -> Result<Task, String> {
    let found = Task::ALL.into_iter().find(|task| task.name() == text);
    found.ok_or_else(|| "not a task".to_owned())
}

impl RunsArgs {
    fn plan(&self) -> Plan {
        Plan { rounds: usize::from(self.runs), ..Plan::default() }
    }

    fn style(&self) -> Style {
        if self.markdown { Style::Markdown } else { Style::Plain }
    }
}

/// Carries out `dewar bench`.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let disk = || vec![Medium::disk()];
    match &args.workload {
        Named::Worker(worker) => Ok(output::print(worker.task.run()?.as_bytes())?),
        Named::Syscalls(runs) => syscalls(runs),
        Named::Walk(runs) => compare(runs, Workload::walk(worker()?), disk()),
        Named::Start(runs) => compare(runs, Workload::start(), disk()),
        Named::Build(build) if build.command.is_empty() => {
            let media = vec![Medium::disk(), Medium::memory()];
            compare(&build.runs, Workload::sample(build.jobs), media)
        }
        Named::Build(build) => {
            let shell = |line: &OsString| vec!["sh".into(), "-c".into(), line.clone()];
            let prepare = build.prepare.as_ref().map_or(Vec::new(), shell);
            compare(&build.runs, Workload::custom(build.command.clone(), prepare), disk())
        }
    }
}

/// This program as the worker of measurements.
fn worker() -> anyhow::Result<Worker> {
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    Ok(Worker { program, arguments: vec!["bench".into(), "worker".into()] })
}

fn compare(runs: &RunsArgs, workload: Workload, media: Vec<Medium>) -> anyhow::Result<()> {
    let setup = Setup::new()?;
    let comparison = Comparison { workload, configs: setup.configs, media, plan: runs.plan() };
    let report = comparison.run(&mut progress::on_terminal())?;
    progress::clear();
    keep(runs, |path| export::write_json(path, &report))?;
    Ok(output::print((table::comparison(&report, runs.style()) + "\n").as_bytes())?)
}

fn syscalls(runs: &RunsArgs) -> anyhow::Result<()> {
    let setup = Setup::new()?;
    let (worker, plan) = (worker()?, runs.plan());
    let syscalls = Syscalls { configs: setup.configs, worker, medium: Medium::disk(), plan };
    let report = syscalls.run(&mut progress::on_terminal())?;
    progress::clear();
    keep(runs, |path| export::write_json(path, &report))?;
    Ok(output::print((report.table(runs.style()) + "\n").as_bytes())?)
}

fn keep(runs: &RunsArgs, write: impl FnOnce(&Path) -> std::io::Result<()>) -> anyhow::Result<()> {
    let Some(path) = &runs.json else { return Ok(()) };
    write(path).with_context(|| format!("cannot write `{}`", path.display()))
}

/// The configurations, and what they need while they run.
struct Setup {
    configs: Vec<Config>,
    /// The profile of Dewar's configurations, and the records of their runs.
    _files: TempDir,
}

/// Dewar's configurations: name, arguments of `dewar run`, part played, description.
const CONFIGS: [(&str, &[&str], Kind, &str); 6] = [
    ("base", &["--enforce=off"], Kind::Base, "dewar: same launch and interposition, no decisions"),
    ("dewar all", &["--mode=all"], Kind::Dewar, "every open decided"),
    ("dewar fast", &["--mode=fast"], Kind::Dewar, "reads left to the kernel where all may"),
    ("only files", &["--enforce=files"], Kind::Dewar, "only the file object manager decides"),
    ("only processes", &["--enforce=processes"], Kind::Dewar, "only the process object manager"),
    ("only sockets", &["--enforce=sockets"], Kind::Dewar, "only the socket object manager"),
];

impl Setup {
    /// Native, Dewar's own, and the other tools found on this machine.
    fn new() -> anyhow::Result<Self> {
        let files = TempDir::with_prefix("dewar-bench-").context("cannot make a directory")?;
        let program = worker()?.program;
        let profile = files.path().join("bench.toml");
        std::fs::write(&profile, profile_for(&program)).context("cannot write a profile")?;
        let (program, profile) = (program.to_string_lossy(), profile.to_string_lossy());
        let state = files.path().to_string_lossy().into_owned();
        let own = CONFIGS.map(|(name, arguments, kind, description)| {
            let fixed = [&*program, "run", "-p", &*profile, "-w", WORKSPACE];
            let prefix = [&fixed, arguments, &["--"]].concat();
            let mut config = Config::new(name, kind, &prefix, description);
            // Measurements leave no trace among the records of real runs.
            config.env.push(("XDG_STATE_HOME".to_owned(), state.clone()));
            config
        });
        let configs = [Config::native()].into_iter().chain(own).chain(peers::found()).collect();
        Ok(Self { configs, _files: files })
    }
}

/// The default profile, and what the worker needs: itself, and connections to itself.
fn profile_for(program: &Path) -> String {
    format!(
        "extends = \"workspace\"\nfiles.exec = [{program:?}]\n\
         network.connect = [\"127.0.0.1:*\"]\nnetwork.bind = [\"127.0.0.1:*\"]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_measurements_is_good() {
        let source = profile::Source::Text {
            name: "bench".into(),
            text: profile_for(Path::new("/opt/dewar")),
            directory: "/".into(),
        };
        let variables = profile::Variables {
            workspace: "/w".into(),
            home: "/home/me".into(),
            tmp: "/tmp".into(),
            user: "me".into(),
            nameservers: vec![],
        };
        profile::load(&source, &variables, &mut |_| Ok(vec![])).unwrap();
    }

    #[test]
    fn every_task_of_the_worker_is_found_by_its_name() {
        assert!(Task::ALL.into_iter().all(|wanted| task(wanted.name()) == Ok(wanted)));
    }
}
