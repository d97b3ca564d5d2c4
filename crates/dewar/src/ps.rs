//! `dewar ps`: what runs.

use crate::{
    control::{Reply, Request, Run, Status},
    output,
    run::document::moment,
};
use clap::Args;
use cli::look::{self, FAINT, NAME, STRONG};
use monitor::{ProcessStatus, visible};
use serde::Serialize;
use std::{
    fmt::Write as _,
    time::{Duration, SystemTime},
};

const EXAMPLES: &str = "\
Examples:
  dewar ps                                        runs, and their processes as trees
  dewar ps --json | jq -r '.[].processes[].pid'

Exit status: 0, also when nothing runs.";

/// List runs, their domains and their processes.
///
/// Of each run: its id, which other commands take, its name, age, profile and command; then its
/// processes, each with its domain.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    status: Status,
    processes: Vec<ProcessStatus>,
}

/// Carries out `dewar ps`.
pub(crate) fn run(args: &PsArgs) -> anyhow::Result<()> {
    let mut shown = Vec::new();
    for mut run in Run::all()? {
        // One that has ended since is left out.
        if let Ok(Reply::Processes(processes)) = run.ask(Request::Processes) {
            shown.push(Shown { status: run.status, processes });
        }
    }
    if args.json {
        return Ok(output::print(output::json(&document(&shown)?)?.as_bytes())?);
    }
    Ok(look::show(&tell(&shown)?)?)
}

/// The runs as JSON, with times as all documents have them.
fn document(shown: &[Shown]) -> serde_json::Result<serde_json::Value> {
    let mut runs = serde_json::to_value(shown)?;
    for (run, of) in runs.as_array_mut().into_iter().flatten().zip(shown) {
        run["started_at"] = moment(of.status.started).into();
        if let Some(fields) = run.as_object_mut() {
            fields.remove("started");
        }
    }
    Ok(runs)
}

fn tell(runs: &[Shown]) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    if runs.is_empty() {
        writeln!(text, "nothing runs")?;
    }
    for (index, Shown { status, processes }) in runs.iter().enumerate() {
        if index > 0 {
            writeln!(text)?;
        }
        let name = status.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        let command = visible(&status.command.join(" "));
        writeln!(
            text,
            "{NAME}{}{NAME:#}{name}  {FAINT}{}  {}{FAINT:#}  {STRONG}{command}{STRONG:#}",
            status.id,
            age(status.started),
            visible(&status.profile)
        )?;
        let roots = processes.iter().filter(|it| !processes.iter().any(|p| p.pid == it.parent));
        for root in roots {
            tree(&mut text, root, processes, 1)?;
        }
    }
    Ok(text)
}

/// A process and, further in, those that it started.
fn tree(
    text: &mut String,
    process: &ProcessStatus,
    all: &[ProcessStatus],
    depth: usize,
) -> std::fmt::Result {
    let (pid, domain) = (process.pid, flask::domain_of(&process.context));
    let pad = depth * 2;
    writeln!(text, "{:pad$}{pid} {} {FAINT}[{domain}]{FAINT:#}", "", visible(&process.comm))?;
    // The list is a snapshot of many moments; a process is nobody's ancestor twice.
    let children = all.iter().filter(|it| it.parent == pid && it.pid != pid);
    children
        .take_while(|_| depth < all.len())
        .try_for_each(|child| tree(text, child, all, depth + 1))
}

/// How long ago that was, to the second.
fn age(since: SystemTime) -> String {
    let age = SystemTime::now().duration_since(since).unwrap_or_default();
    humantime::format_duration(Duration::from_secs(age.as_secs())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_shown_as_a_tree_whatever_their_parents_are_said_to_be() {
        let process = |pid, parent| ProcessStatus {
            pid,
            parent,
            comm: format!("p{pid}\u{1b}"),
            context: "dewar_u:dewar_r:git_t".into(),
        };
        let mut text = String::new();
        let all = [process(5, 1), process(6, 5), process(7, 6), process(8, 5)];
        tree(&mut text, &all[0], &all, 1).unwrap();
        let plain = look::plain(&text);
        let lines: Vec<&str> = plain.lines().collect();
        assert_eq!(
            lines,
            [
                "  5 p5\\u001b [git]",
                "    6 p6\\u001b [git]",
                "      7 p7\\u001b [git]",
                "    8 p8\\u001b [git]"
            ]
        );
        let circle = [process(5, 6), process(6, 5)];
        tree(&mut text, &circle[0], &circle, 1).unwrap();
    }
}
