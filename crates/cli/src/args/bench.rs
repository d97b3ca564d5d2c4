//! `dewar bench`

use clap::{Args, Subcommand};
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

/// What `dewar bench revoke` holds at once, unless told otherwise.
pub const MOST_HELD: usize = 4096;

/// Measure what protection costs on this machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: What,
}

#[derive(Debug, Subcommand)]
pub enum What {
    /// A build: native, interposed without decisions, under each mode, and under other tools found here
    Build(BuildArgs),
    /// Single system calls: native, the bare notification, under Dewar
    Syscalls(MeasureArgs),
    /// 48,000 times open, fstat, read, close, access, stat
    Walk(MeasureArgs),
    /// The start and end of `true`
    Start(MeasureArgs),
    /// Plugins: single operations, and kernels on every target beside gcc and LuaJIT
    Plugin(PluginBenchArgs),
    /// Calls between two processes: without checks, checked, with client identification, in another's name
    Ipc(CallArgs),
    /// What a decision adds to a call, by where it is found: hint, cache, security server
    Decision(CallArgs),
    /// What taking back descriptors, mappings and connections costs, by their number
    Revoke(RevokeArgs),
    /// Write the sample application into a directory
    Sample {
        /// Where to; it is created if it does not exist
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct BuildArgs {
    #[command(flatten)]
    pub measure: MeasureArgs,

    /// Jobs of `make`
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,

    /// Undoes COMMAND before each run; run by the shell, natively, and not measured
    #[arg(long, value_name = "SHELL-COMMAND", requires = "command")]
    pub undo: Option<OsString>,

    /// A command to measure in the working directory instead of building the sample application
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// Measured rounds; one more comes first and is not counted
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Only native, base and Dewar itself, without other tools
    #[arg(long)]
    pub no_peers: bool,

    /// Only in memory, not on disk
    #[arg(long)]
    pub no_disk: bool,

    #[command(flatten)]
    pub show: ShowArgs,
}

/// Options of `dewar bench plugin`.
#[derive(Debug, Args)]
pub struct PluginBenchArgs {
    /// Measured rounds
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Milliseconds that one measurement lasts at least
    #[arg(long, value_name = "MS", default_value_t = 4)]
    pub batch_ms: u64,

    /// Only these kernels (repeat for several)
    #[arg(long, value_name = "NAME")]
    pub kernel: Vec<String>,

    /// Only these sizes of request in bytes (repeat for several)
    #[arg(long, value_name = "BYTES")]
    pub size: Vec<usize>,

    /// Only single operations, no kernels
    #[arg(long)]
    pub no_kernels: bool,

    /// Only our own targets, not gcc, LuaJIT and CoD
    #[arg(long)]
    pub no_peers: bool,

    #[command(flatten)]
    pub show: ShowArgs,
}

/// How to measure calls, and what to print.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// Rounds; all ways take turns in each
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Measure D-Bus, gRPC and iceoryx2, too, by this program: `peers/` of Dewar's sources, built
    #[arg(long, value_name = "PROGRAM")]
    pub peers: Option<PathBuf>,

    #[command(flatten)]
    pub show: ShowArgs,
}

/// How to measure revocation, and what to print.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// The most that is held at once
    #[arg(long, value_name = "N", default_value_t = MOST_HELD)]
    pub most: usize,

    #[command(flatten)]
    pub show: ShowArgs,

    /// Also draw how the time grows, to FILE, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// How a report is printed, and where else it is kept.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Print tables as Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,

    /// Print the results with every single run as JSON
    #[arg(long)]
    pub json: bool,

    /// Also write the results with every single run to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
}
