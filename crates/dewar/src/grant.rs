//! `dewar grant`: gives something back to a run, or gives it something new, while it runs.

use crate::{
    amend::{Amend, ObjectArgs},
    control::RunArg,
};
use clap::Args;
use monitor::RevokeMode;
use profile::AmendmentKind;

const EXAMPLES: &str = "\
Examples:
  dewar grant last --file /srv/data                 may read it
  dewar grant last --file /srv/data --write         may change it, too
  dewar grant ci --net github.com:443               may connect there
  dewar grant ci --all                              takes every revocation back

What was revoked comes back as it was; descriptors and connections that were taken do not. What
the profile denies or hides stays so. What a running sandbox cannot be given, because the
kernel was told at its start: programs to execute, a kind of socket that no domain of it could
make, a network if it has none, in mode `fast` files to read.

Exit status: 0 if it is in force; 1 if nothing was changed, or if the view of the run,
which was made at its start, keeps part of it away; 2 for wrong use.";

/// Give something to a run while it runs, or give it back.
///
/// Takes back what `dewar revoke` with the same arguments did. Where nothing was revoked, gives
/// what the profile neither grants nor denies nor hides.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "dewar grant [OPTIONS] [RUN] <--file …|--net …|--unix …|--exec …|--all>")]
pub(crate) struct GrantArgs {
    #[command(flatten)]
    run: RunArg,

    #[command(flatten)]
    object: ObjectArgs,

    /// Print the receipt as JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar grant`.
pub(crate) fn run(args: &GrantArgs) -> anyhow::Result<()> {
    let (kind, mode) = (AmendmentKind::Grant, RevokeMode::Repair);
    Amend { run: &args.run, kind, object: &args.object, mode, json: args.json }.carry_out()
}
