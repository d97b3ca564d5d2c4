//! `dewar ps`: what runs.

use crate::{
    control::{Reply, Request, Run, Status, Unheard, odd},
    failure::Failed,
    output,
    run::document::moment,
};
use anyhow::bail;
use clap::Args;
use cli::look::{self, FAINT, NAME, STRONG};
use monitor::{ProcessStatus, visible};
use serde::Serialize;
use std::{
    fmt::Write as _,
    path::PathBuf,
    time::{Duration, SystemTime},
};

const EXAMPLES: &str = "\
Examples:
  dewar ps                                        runs, and their processes as trees
  dewar ps --json | jq -r '.[].processes[].pid'

Exit status: 0, also when nothing runs; 1 when a run does not answer; 2 for wrong use.";

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

pub(crate) struct Shown {
    pub(crate) status: Status,
    pub(crate) processes: Vec<ProcessStatus>,
    /// Why nobody says what its processes are, and how it goes on or ends.
    pub(crate) unheard: Option<(WhyUnheard, String)>,
}

/// Why a run does not say what its processes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhyUnheard {
    /// Its monitor is stopped.
    Stopped,
    /// It does not answer.
    Silent,
}

/// Carries out `dewar ps`.
pub(crate) fn run(args: &PsArgs) -> anyhow::Result<()> {
    let mut shown = Vec::new();
    let (runs, unheard) = Run::and_unheard()?;
    for mut run in runs {
        let (processes, unheard) = match run.ask(Request::Processes) {
            Ok(Reply::Processes(processes)) => (processes, None),
            // One that has ended since is left out.
            Err(_) if !run.goes_on() => continue,
            asked => {
                let why = asked.map_or_else(|error| error.to_string(), |_| odd().to_string());
                (Vec::new(), Some((WhyUnheard::Silent, why)))
            }
        };
        shown.push(Shown { status: run.status, processes, unheard });
    }
    shown.extend(unheard.iter().map(of_unheard));
    if args.json {
        let runs: Vec<Running> = shown.iter().map(Running::of).collect();
        output::print(output::json(&runs)?.as_bytes())?;
    } else {
        let width = look::columns().unwrap_or(usize::MAX);
        look::show(&tell(&shown, width)?)?;
    }
    let is_silent = |it: &&Shown| matches!(it.unheard, Some((WhyUnheard::Silent, _)));
    match shown.iter().find(is_silent) {
        Some(Shown { status: Status { id, pid, .. }, unheard: Some((_, what)), .. }) => {
            bail!(Failed(format!("run {id} (process {pid}) does not answer: {what}")))
        }
        _ => Ok(()),
    }
}

/// A run that does not answer, as far as it has written down what it is.
fn of_unheard(run: &Unheard) -> Shown {
    let unknown = || Status {
        id: run.id.clone(),
        name: None,
        pid: run.pid,
        started: SystemTime::now(),
        command: Vec::new(),
        profile: String::new(),
        argument: String::new(),
        directory: PathBuf::new(),
        variables: profile::Variables::default(),
        domains: Vec::new(),
        changes: 0,
    };
    let status = run.begun.as_ref().map_or_else(unknown, |begun| begun.status.clone());
    let why = if run.is_stopped { WhyUnheard::Stopped } else { WhyUnheard::Silent };
    Shown { status, processes: Vec::new(), unheard: Some((why, run.remedy())) }
}

/// A run that goes on, and its processes: what `dewar ps --json` prints of it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Running {
    /// What other commands take.
    id: String,
    /// What `dewar run --name` called it.
    name: Option<String>,
    /// The monitor's process.
    pid: u32,
    started_at: String,
    /// The command and its arguments.
    command: Vec<String>,
    profile: String,
    /// What `${workspace}` and `${home}` stand for in it.
    workspace: String,
    home: String,
    domains: Vec<String>,
    /// How often its policy was changed.
    changes: usize,
    /// Whether it is stopped with its monitor, so that nobody says what its processes are.
    stopped: bool,
    /// Whether it does not answer, though its monitor has not ended.
    silent: bool,
    processes: Vec<ProcessDocument>,
}

/// A process in a run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ProcessDocument {
    /// In the monitor's PID namespace; so is its parent's.
    pid: u32,
    parent: u32,
    /// Name of the process.
    comm: String,
    /// Its security context.
    context: String,
}

impl Running {
    fn of(shown: &Shown) -> Self {
        let Status {
            id, name, pid, started, command, profile, variables, domains, changes, ..
        } = shown.status.clone();
        let is_unheard = |why| shown.unheard.as_ref().is_some_and(|it| it.0 == why);
        let process = |of: &ProcessStatus| ProcessDocument {
            pid: of.pid,
            parent: of.parent,
            comm: of.comm.clone(),
            context: of.context.clone(),
        };
        Self {
            id,
            name,
            pid,
            started_at: moment(started),
            command,
            profile,
            workspace: variables.workspace.display().to_string(),
            home: variables.home.display().to_string(),
            domains,
            changes,
            stopped: is_unheard(WhyUnheard::Stopped),
            silent: is_unheard(WhyUnheard::Silent),
            processes: shown.processes.iter().map(process).collect(),
        }
    }
}

pub(crate) fn tell(runs: &[Shown], width: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    if runs.is_empty() {
        writeln!(text, "nothing runs")?;
    }
    for (index, Shown { status, processes, unheard }) in runs.iter().enumerate() {
        if index > 0 {
            writeln!(text)?;
        }
        let name = status.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        let (age, profile) = (age(status.started), visible(&status.profile));
        let beside = [&status.id, &name, &age, &profile].map(|it| it.chars().count());
        let room = width.saturating_sub(beside.iter().sum::<usize>() + 6);
        let command = look::cut(&visible(&status.command.join(" ")), room.max(12));
        writeln!(
            text,
            "{NAME}{}{NAME:#}{name}  {FAINT}{age}  {profile}{FAINT:#}  {STRONG}{command}{STRONG:#}",
            status.id,
        )?;
        if let Some((why, what)) = unheard {
            let told = match why {
                WhyUnheard::Stopped => format!("stopped: {what}"),
                WhyUnheard::Silent => format!("process {} does not answer: {what}", status.pid),
            };
            writeln!(text, "  {}", look::fill(told.split(' '), 2, width))?;
        }
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

    #[test]
    fn the_screen_is_as_it_was_reviewed() {
        let process = |pid, parent, comm: &str, domain: &str| ProcessStatus {
            pid,
            parent,
            comm: comm.into(),
            context: format!("dewar_u:dewar_r:{domain}_t"),
        };
        let status = |id: &str, name: Option<&str>, command: &str| Status {
            id: id.into(),
            name: name.map(str::to_owned),
            pid: 4711,
            // Nothing is younger: its age is 0.
            started: SystemTime::now() + Duration::from_secs(3600),
            command: command.split(' ').map(str::to_owned).collect(),
            profile: "profile agent".into(),
            argument: "agent".into(),
            directory: PathBuf::new(),
            variables: profile::Variables::default(),
            domains: vec!["main".into(), "git".into()],
            changes: 0,
        };
        let long = "node agent.js --task make the tests pass and tell what you did, in detail";
        let shown = [
            Shown {
                status: status("4k7m2p9x", Some("nightly"), long),
                processes: vec![
                    process(2, 1, "node", "main"),
                    process(9, 2, "git", "git"),
                    process(10, 9, "git-remote-https", "git"),
                ],
                unheard: None,
            },
            Shown {
                status: status("81c0aa3e", None, "sleep 60"),
                processes: vec![process(2, 1, "sleep", "main")],
                unheard: None,
            },
        ];
        crate::screens::screen("ps", |width| tell(&shown, width).unwrap());
    }
}
