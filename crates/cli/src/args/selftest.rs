//! `dewar selftest`

use clap::{Args, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  dewar selftest                            profile `agent`: does the wall hold, here, today?
  dewar selftest -p my.toml                 what code under my profile could still do, ranked
  dewar selftest --mode fast --without user
                                            as on a machine that forbids user namespaces
  dewar selftest --against bwrap,firejail   the same cases under other tools, side by side
  dewar selftest git-hook dns-labels        these cases only
  dewar selftest list; dewar selftest explain tcp-fast-open

Every case is an attack. It runs with the wall off first, in a scratch directory and against
processes and services that belong to the test, and then under Dewar. Who judges stays outside
and believes nothing that the attack says.

  stopped      it did not happen; `recorded`: `dewar explain` would tell of it
  reported     it happened, and the end of the run says so by name
  GOT THROUGH  it happened
  not shown    it does not happen here with the wall off either, so it proves nothing
  n/a          the tool, or this machine, cannot be asked

Exit status: 0 if nothing got through, 1 if something did, 2 for wrong use, 125 if nothing could
be tried, 130 if interrupted.";

/// Attack the sandbox, and say what got through.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct SelftestArgs {
    #[command(subcommand)]
    pub what: Option<What>,

    /// The profile whose walls are tried: a name or a file
    #[arg(short, long, value_name = "PROFILE", default_value = "agent")]
    pub profile: String,

    /// How much the monitor decides itself
    #[arg(long, value_name = "MODE", default_value = "all")]
    pub mode: ModeName,

    /// Pretend that this machine lacks layers of protection; `dewar doctor` lists them
    #[arg(long, value_name = "LAYER,…", value_delimiter = ',')]
    pub without: Vec<String>,

    /// Also behind these: `none`, bwrap, bwrap-net, firejail, landrun, sandlock, nono, codex, srt
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    pub against: Vec<String>,

    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,

    /// Print a table in Markdown
    #[arg(long)]
    pub markdown: bool,

    /// Names of cases; all of them without any
    #[arg(value_name = "CASE")]
    pub cases: Vec<String>,
}

/// What is asked besides trying.
#[derive(Debug, Subcommand)]
pub enum What {
    /// List the cases
    #[command(after_help = "Exit status: 0; 2 for wrong use.")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what a case does, how bad it is, and where it is known from
    #[command(after_help = "Exit status: 0; 2 for wrong use, or if there is no such case.")]
    Explain {
        /// Its name
        case: String,
    },
}

/// How much the monitor decides itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// Every open is decided, counted and explained
    All,
    /// Reads that all domains may do are left to the kernel
    Fast,
}
