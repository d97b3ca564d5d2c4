//! `dewar daemon`

use clap::Args;

const AFTER_HELP: &str = "\
Examples:
  dewar daemon &                          runs that begin from now on use it
  systemctl --user enable --now dewar.socket
  dewar daemon --runs                     the runs that use it
  dewar policy set last web_on=off        change a boolean of the policy of a run
  dewar audit --since 10m                 what was denied

Runs use a daemon that answers, and decide by themselves when there is none.
One that is killed is missed for a moment: start it again, and it goes on
where it stopped.

Exit status: 0 when it was ended by SIGTERM or SIGINT; 2 for wrong use; 125 if
it could not start: one runs already, for example.";

/// Serve the policies of runs, and keep the journal.
///
/// One process decides for all runs of this user that begin while it is there, changes their
/// policies on request, and writes what they are denied into a journal that `dewar audit` reads.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DaemonArgs {
    /// Serve every user of this machine; needs root
    #[arg(long)]
    pub system: bool,

    /// List the runs that use the daemon, and do nothing else
    #[arg(long)]
    pub runs: bool,

    /// With --runs: print JSON
    #[arg(long, requires = "runs")]
    pub json: bool,

    /// Report a run that has not applied a change of policy after that many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    pub report_after: f64,

    /// Freeze its processes after that many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub freeze_after: f64,

    /// Kill it after that many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub kill_after: f64,

    /// Throw the oldest records away when the journal has more than that many MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub journal_size: u64,
}
