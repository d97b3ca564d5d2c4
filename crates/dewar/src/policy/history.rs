//! `dewar policy history`: what was changed in a run.

use crate::{
    changed::ChangedDocument,
    control::{PolicyChange, Reply, Request, Run, RunArg, odd},
    output, receipt,
};
use anyhow::bail;
use clap::Args;
use cli::look;

const EXAMPLES: &str = "\
Examples:
  dewar policy history                  of the only run there is
  dewar policy history ci --json

Of a run that has ended, `dewar explain` shows it.

Exit status: 0; 2 for wrong use, or if there is no such run.";

/// List what was changed in a run since it started, with receipts.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct HistoryArgs {
    #[command(flatten)]
    run: RunArg,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar policy history`.
pub(super) fn run(args: &HistoryArgs) -> anyhow::Result<()> {
    let mut run = Run::find(&args.run)?;
    let Reply::History(changes) = run.ask(Request::History)? else { bail!(odd()) };
    let documents = || changes.iter().map(ChangedDocument::of).collect::<Vec<_>>();
    let text = if args.json { output::json(&documents())? } else { tell(&changes)? };
    Ok(output::print(text.as_bytes())?)
}

fn tell(changes: &[PolicyChange]) -> Result<String, std::fmt::Error> {
    if changes.is_empty() {
        return Ok("nothing was changed\n".into());
    }
    let width = look::columns().unwrap_or(usize::MAX);
    changes.iter().map(|it| receipt::tell_dated(it, width)).collect()
}
