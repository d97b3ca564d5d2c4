//! `dewar bench`: what protection costs here.

use anyhow::bail;
use clap::{Args, Subcommand};
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  dewar bench build                      the sample application, natively and under every configuration
  dewar bench build --runs 11 -- make    a build of your own
  dewar bench syscalls                   single system calls";

/// Measure what protection costs on this machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// A build: native, interposed without decisions, under each mode, and under other tools found here
    Build(BuildArgs),
    /// Single system calls: native, the bare notification, under Dewar
    Syscalls(RunsArgs),
}

#[derive(Debug, Args)]
struct BuildArgs {
    #[command(flatten)]
    runs: RunsArgs,

    /// A command to measure instead of building the sample application
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct RunsArgs {
    /// Runs of each configuration; the first is not counted
    #[arg(long, value_name = "N", default_value_t = 7)]
    runs: u32,

    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar bench`.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    match &args.workload {
        Workload::Build(build) => {
            bail!("not measured yet: {} × {:?}", build.runs.runs, build.command)
        }
        Workload::Syscalls(runs) => {
            bail!("not measured yet: {} runs, json: {}", runs.runs, runs.json)
        }
    }
}
