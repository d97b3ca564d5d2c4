//! `dewar bench`

use super::{positive, show::ShowArgs};
use clap::{Args, Subcommand};
use std::{ffi::OsString, path::PathBuf};

const EXAMPLES: &str = "\
Examples:
  dewar bench build                         the sample application under every configuration
  dewar bench build --undo 'make clean' -- make
                                            a build of your own, in the working directory
  dewar bench run -- ./my-tests             the price of Dewar for a command, layer by layer
  dewar bench project --fetch               builds Lua, zlib and SQLite
  dewar bench syscalls                      single system calls
  dewar bench walk; dewar bench start       a walk over a tree of files; the start of `true`
  dewar bench unix                          the classic suite of system benchmarks
  dewar bench harden                        protections by compilers: price, and what they stop
  dewar bench kernel --fetch                the suite on other kernels, in guests
  dewar bench self                          native against native: is there a difference?
  dewar bench trust DIR/walk.jsonl          can its intervals be trusted, with noise like this?
  dewar bench resolution                    where decisions were found, by object manager
  dewar bench releases OLD NEW              two programs `dewar` compared
  dewar bench report -o report.html         everything, on one page
  dewar bench plugin                        plugins: calls, kernels beside gcc, LuaJIT, CoD
  dewar bench ipc; dewar bench decision     calls between processes, and what checking them adds
  dewar bench library                       a check of the library, in Rust, C and Python
  dewar bench revoke                        taking back what is open, mapped and connected
  dewar bench web --plot DIR                web servers with plugins: Dewar's, Apache, nginx
  dewar bench web --growth                  the same by connections, plugins and rules
  dewar bench web --soak 10000000           does its memory stay flat? Unattended
  dewar bench sample DIR                    write the sample application, to look at or to build

Small units of work go round between settings that live beside each other, in an order drawn
anew each round. Figures are medians of the ratios within rounds, with 95 % intervals. It ends
when every interval is narrow enough or the time is over, and says which; Ctrl-C ends it early
without loss. With --keep, what was begun is continued.

Exit status: 0; 2 for wrong use; 125 if nothing could be measured.";

/// What `dewar bench revoke` holds at once, unless told otherwise.
pub const MOST_HELD: u32 = 4096;

/// Measure what protection costs on this machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: What,
}

#[derive(Debug, Subcommand)]
pub enum What {
    /// A build: native, interposed without decisions, under each mode, and under other tools
    Build(BuildArgs),
    /// A build of a real size: Lua, zlib and SQLite, file by file
    Project(ProjectArgs),
    /// The price of Dewar for any command, layer by layer
    Run(RunLayersArgs),
    /// Single system calls: native and under Dewar
    Syscalls(MeasureArgs),
    /// Many files: open, fstat, read, close, access, stat
    Walk(MeasureArgs),
    /// The classic suite: arithmetic, pipes, processes, copies, scripts, compiler
    Unix(MeasureArgs),
    /// Protections by compilers: what they cost, and which attacks they stop
    Harden(HardenArgs),
    /// The classic suite on other kernels, emulated: instructions, no time
    Kernel(KernelArgs),
    /// Native against native: whether a difference is found that is none
    #[command(name = "self")]
    Itself(MeasureArgs),
    /// Whether intervals hold and small effects are found, with the noise of recorded pairs
    Trust(super::trust::TrustArgs),
    /// Where decisions were found, by object manager: the founding table
    Resolution(ResolutionArgs),
    /// Two programs `dewar` compared
    Releases(ReleasesArgs),
    /// Everything that was measured, on one page; measures what is missing
    Report(ReportArgs),
    /// The start and end of `true`
    Start(MeasureArgs),
    /// Plugins: single operations, and kernels on every target beside gcc and LuaJIT
    Plugin(PluginBenchArgs),
    /// Calls between two processes: without checks, checked, with client identification, in
    /// another's name
    Ipc(CallArgs),
    /// What a decision adds to a call, by where it is found: hint, cache, security server
    Decision(CallArgs),
    /// What a check of the library for object managers takes, in Rust, C and Python
    Library(super::library::LibraryArgs),
    /// What taking back descriptors, mappings and connections costs, by their number
    Revoke(RevokeArgs),
    /// Web servers that turn images gray: Dewar's with a plugin, Apache and nginx with C
    Web(WebArgs),
    /// Write the sample application into a directory
    #[command(after_help = "Exit status: 0; 2 for wrong use; 125 if it cannot be written.")]
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

/// A build of a real size.
#[derive(Debug, Args)]
pub struct ProjectArgs {
    #[command(flatten)]
    pub measure: MeasureArgs,

    /// First fetch the sources from Debian's archive, by apt-get
    #[arg(long)]
    pub fetch: bool,

    /// Where the sources are, or are put [default: dewar/project in the cache directory]
    #[arg(long, value_name = "DIR")]
    pub sources: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// Ends when every interval is within so many percent to each side
    #[arg(long, value_name = "PERCENT", value_parser = positive, default_value_t = 1.0)]
    pub within: f64,

    /// Ends after so many minutes in any case
    #[arg(long, value_name = "MINUTES", value_parser = positive, default_value_t = 10.0)]
    pub budget: f64,

    /// Ends after so many rounds in any case
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,

    /// Only this setting beside native (may be repeated)
    #[arg(long, value_name = "SETTING")]
    pub only: Vec<String>,

    /// Only native, base and Dewar itself, without other tools
    #[arg(long)]
    pub no_peers: bool,

    /// In memory instead of on disk
    #[arg(long)]
    pub no_disk: bool,

    #[command(flatten)]
    pub show: ShowArgs,
}

/// Any command.
#[derive(Debug, Args)]
pub struct RunLayersArgs {
    #[command(flatten)]
    pub measure: MeasureArgs,

    /// Undoes COMMAND before each run; run by the shell, natively, and not measured
    #[arg(long, value_name = "SHELL-COMMAND")]
    pub undo: Option<String>,

    /// The profile
    #[arg(short, long, value_name = "PROFILE", default_value = "workspace")]
    pub profile: String,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Protections by compilers.
#[derive(Debug, Args)]
pub struct HardenArgs {
    #[command(flatten)]
    pub measure: MeasureArgs,

    /// Only the attacks, without the price
    #[arg(long)]
    pub attacks: bool,
}

/// Other kernels.
#[derive(Debug, Args)]
pub struct KernelArgs {
    /// First fetch kernels of several releases from Debian's archive, by apt-get
    #[arg(long)]
    pub fetch: bool,

    /// This kernel instead of those that were fetched and those in /boot (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub kernel: Vec<PathBuf>,

    /// How often each test is run in each guest
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Only kernels as they are, without other configurations
    #[arg(long)]
    pub as_is: bool,

    #[command(flatten)]
    pub show: ShowArgs,
}

/// Where decisions were found.
#[derive(Debug, Args)]
pub struct ResolutionArgs {
    /// Rounds of `make` and `make clean`
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: u32,

    #[command(flatten)]
    pub show: ShowArgs,
}

/// Two programs.
#[derive(Debug, Args)]
pub struct ReleasesArgs {
    #[command(flatten)]
    pub measure: MeasureArgs,

    /// Compare the decisions that a build asks for, and no time: the same on every machine
    #[arg(long)]
    pub count: bool,

    /// The program `dewar` that the other is compared with
    pub old: PathBuf,

    /// The program `dewar` that is compared
    pub new: PathBuf,
}

/// Everything on one page.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Where results are kept [default: dewar/bench in the state directory]
    pub directory: Option<PathBuf>,

    /// Write the page to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print all tables as Markdown
    #[arg(long)]
    pub markdown: bool,

    /// Print every column of every table
    #[arg(long)]
    pub wide: bool,

    /// Measure nothing: show what is there
    #[arg(long)]
    pub as_is: bool,

    /// First fetch from Debian's archive what is missing: sources to build, kernels
    #[arg(long, conflicts_with = "as_is")]
    pub fetch: bool,

    /// Minutes for the whole of it; each experiment gets its share
    #[arg(long, value_name = "MINUTES", value_parser = positive, default_value_t = 45.0)]
    pub budget: f64,
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
    #[arg(long, value_name = "N", default_value_t = MOST_HELD, value_parser = clap::value_parser!(u32).range(1..))]
    pub most: u32,

    #[command(flatten)]
    pub show: ShowArgs,

    /// Also draw how the time grows, to FILE, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// Which web servers to measure, for how long, and what to print.
#[derive(Debug, Args)]
pub struct WebArgs {
    /// Only this server beside nginx -O3 native (may be repeated)
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["growth", "soak"])]
    pub only: Vec<String>,

    /// How processor time grows with connections, plugins and rules, of Dewar's server alone
    #[arg(long)]
    pub growth: bool,

    /// Send so many requests of all kinds to Dewar's server alone, and watch its memory
    #[arg(long, value_name = "REQUESTS", conflicts_with = "growth")]
    pub soak: Option<u64>,

    /// First install Apache and nginx by apt-get, as root on Debian
    #[arg(long)]
    pub install: bool,

    /// Ends when every interval is within so many percent to each side
    #[arg(long, value_name = "PERCENT", value_parser = positive, default_value_t = 1.0)]
    pub within: f64,

    /// Ends after so many minutes in any case
    #[arg(long, value_name = "MINUTES", value_parser = positive, default_value_t = 10.0)]
    pub budget: f64,

    /// Ends after so many rounds of each image in any case; with --growth, 15 by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,

    /// Draw the figures into DIR, as SVG
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,

    #[command(flatten)]
    pub show: ShowArgs,
}
