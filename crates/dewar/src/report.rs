//! `dewar report`: what programs outside would execute because of a run.

use crate::{
    output,
    run::{Journal, tell_planted},
};
use clap::Args;
use monitor::visible;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  dewar run -p agent -- claude; dewar report
  dewar report --json | jq '.planted[].path'

Exit status: 0, or 125 if there is no such run.";

/// Tell what programs outside would execute because of a run.
///
/// New or changed hooks, configuration, tasks and instructions, repositories, links that lead out
/// of the workspace, set-user-ID bits that were asked for, programs in the directories of PATH; and
/// what is executed when somebody builds or tests the project. Looked for where the profile sets
/// `files.guard`, and told as it was when the run ended.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// The run: its number, or its name [default: the last]
    run: Option<String>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar report`.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let record = Journal::find(args.run.as_deref())?;
    if args.json {
        let text = output::json(&json!({
            "id": record.id,
            "name": record.name,
            "command": record.command,
            "profile": record.profile,
            "guarded": record.guarded,
            "planted": record.planted,
            "planted_more": record.planted_more,
        }))?;
        return Ok(output::print(text.as_bytes())?);
    }
    let (command, profile) = (visible(&record.command.join(" ")), visible(&record.profile));
    let mut text = format!("`{command}` under {profile}\n");
    let told = tell_planted(&record.planted, record.planted_more, true);
    text.push_str(match (record.guarded, told.is_empty()) {
        (false, _) => {
            "nothing was looked for: the profile sets no guard (`files.guard = \"host-trusted\"`)\n"
        }
        (true, true) => "nothing was made or changed that a program outside would execute\n",
        (true, false) => &told,
    });
    Ok(output::print(text.as_bytes())?)
}
