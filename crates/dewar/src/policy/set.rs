//! `dewar policy set`: booleans of running policies.

use super::load::boolean;
use crate::{
    control::Run,
    failure::{Failed, Usage},
    output,
};
use anyhow::{Context as _, bail};
use clap::Args;
use daemon_client::{Administration, Changed, ClientError, DaemonDirs, Target};
use flask::visible;
use monitor::Receipt;
use std::fmt::Write as _;

const AFTER_HELP: &str = "\
Examples:
  dewar policy set last web_on=off             the run that began last
  dewar policy set 3f2a web_on=off log_on=on   both at once, or neither
  dewar policy set --all web_on=off            every run whose policy has the boolean

Returns when everybody concerned has applied the change. A run that does not
answer is reported, then frozen, then killed, as the daemon was told. What the
kernel of a run was told at its start cannot change: then nothing is changed,
and the run is named with what stands in the way. Where root changes the runs
of several users, a run of another user keeps back that user's change alone.

Exit status: 0 when the change is complete; 1 if a run could not be reached,
or cannot reach what it was given, because its view keeps that away,
or not everything was changed because a run cannot follow; 2 for wrong use;
125 otherwise.";

/// Change booleans in the policies of runs that use a daemon, while they run.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, override_usage = "dewar policy set [OPTIONS] <RUN|--all> <BOOLEAN=on|off>...")]
pub(crate) struct SetArgs {
    /// Change the policy of every run that has the booleans
    #[arg(long)]
    all: bool,

    /// The run (its id, the beginning of it, its name, or `last`), unless --all is given; then
    /// booleans
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,

    /// Print what became of the change as JSON
    #[arg(long)]
    json: bool,

    /// Of runs that use the daemon for every user
    #[arg(long)]
    system: bool,
}

/// The id of the run that is called so; the daemon knows runs by their ids alone.
fn id_of(run: &str) -> String {
    let runs = Run::all().unwrap_or_default();
    let named = runs.iter().rfind(|it| it.status.name.as_deref() == Some(run));
    named.map_or_else(|| run.to_owned(), |it| it.status.id.clone())
}

/// Carries out `dewar policy set`.
pub(super) fn run(args: &SetArgs) -> anyhow::Result<()> {
    let mut words = args.words.iter();
    let target = if args.all {
        Target::All
    } else {
        let run = words.next().filter(|word| !word.contains('='));
        Target::Run(id_of(run.context(Usage("name the run first, or say --all".into()))?))
    };
    let booleans = words.map(|word| boolean(word)).collect::<Result<Vec<_>, _>>();
    let booleans = booleans.map_err(Usage)?;
    if booleans.is_empty() {
        bail!(Usage("name a boolean to change: NAME=on or NAME=off".into()));
    }
    let place = DaemonDirs::of(args.system).context("neither XDG_STATE_HOME nor HOME is set")?;
    let changed = match Administration::connect(&place)?.set(target, &booleans) {
        Err(ClientError::Conflict(why)) => bail!(Failed(why)),
        // It has no such boolean, or nobody has.
        Err(ClientError::Refused(why)) => bail!(Usage(why)),
        changed => changed?,
    };
    let text = if args.json { output::json(&changed)? } else { tell(&changed)? };
    output::print(text.as_bytes())?;
    if changed.iter().any(|change| !change.complete) {
        bail!(Failed("the change is not complete".into()));
    }
    Ok(())
}

fn tell(changed: &[Changed]) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let millis = |micros: u64| micros as f64 / 1000.0;
    for change in changed {
        if let Some(why) = &change.refused {
            let runs: Vec<_> = change.members.iter().map(|it| it.run.as_str()).collect();
            writeln!(text, "policy state {}: NOT changed: {}", change.seqno, visible(why))?;
            writeln!(text, "  {} unchanged", runs.join(", "))?;
            continue;
        }
        let word = if change.complete { "complete" } else { "NOT complete" };
        writeln!(
            text,
            "policy state {}: {word} after {:.1} ms",
            change.seqno,
            millis(change.took_us)
        )?;
        for member in &change.members {
            let late = if member.late.is_empty() { "" } else { ", late: " };
            let (run, outcome) = (&member.run, &member.outcome);
            writeln!(
                text,
                "  {run} {outcome} after {:.1} ms{late}{}",
                millis(member.after_us),
                member.late
            )?;
            let receipt = serde_json::from_str::<Receipt>(&member.report).unwrap_or_default();
            let width = cli::look::columns().unwrap_or(usize::MAX);
            crate::receipt::tell_out_of_reach(&mut text, &receipt, width)?;
        }
    }
    Ok(text)
}
