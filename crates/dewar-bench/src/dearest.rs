//! What the decisions of a command are spent on: object managers, calls, places.

use crate::resolution::{self, Record, Spent};
use anyhow::Context as _;
use bench::sheet::{Cell, Sheet};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    path::{Component, Path},
    process::Command,
};

/// Rows of the table of places.
const PLACES: usize = 8;

/// A line of the trail of decisions.
#[derive(Debug, Deserialize)]
struct Decision {
    call: String,
    object: String,
    tclass: String,
}

/// A kind of call on a kind of place, and its share of the time in the monitor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Share {
    call: String,
    place: String,
    share: f64,
}

/// What a command was found to spend.
pub(crate) struct CommandPrice {
    /// Where decisions were found, calls, places.
    pub(crate) sheets: Vec<Sheet>,
    /// The dearest first.
    pub(crate) shares: Vec<Share>,
}

impl Share {
    /// As the subject of a sentence.
    pub(crate) fn said(&self) -> String {
        format!(
            "{:.0} % of the time in the monitor is `{}` of {}",
            self.share * 100.0,
            self.call,
            self.place
        )
    }
}

/// Runs a command twice in the working directory: to see what it takes, and to see on what.
pub(crate) fn of_command(
    profile: &str,
    argv: &[String],
    undo: &[String],
) -> anyhow::Result<CommandPrice> {
    let here = std::env::current_dir()?;
    let place = tempfile::tempdir().context("cannot make a directory")?;
    let trail = place.path().join("trail.jsonl");
    undone(undo)?;
    let mut command = resolution::dewar(profile, &here, &[])?;
    command.args(argv);
    let record = resolution::record(command)?;
    undone(undo)?;
    let file = trail.to_str().context("the temporary directory is not Unicode")?;
    let mut command = resolution::dewar(profile, &here, &["--audit", file])?;
    command.args(argv);
    resolution::record(command)?;
    let text = std::fs::read_to_string(&trail).context("cannot read the trail of decisions")?;
    let decisions: Vec<Decision> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let shares = shares(&record.spent, &decisions, &here);
    let title = "Where decisions were found while the command ran once";
    let sheets = vec![resolution::sheet(title, &record.decisions), calls(&record), places(&shares)];
    Ok(CommandPrice { sheets, shares })
}

fn undone(undo: &[String]) -> anyhow::Result<()> {
    let Some((program, arguments)) = undo.split_first() else { return Ok(()) };
    let status = Command::new(program).args(arguments).status();
    let status = status.with_context(|| format!("cannot run `{program}`"))?;
    anyhow::ensure!(status.success(), "`{}` ended with {status}", undo.join(" "));
    Ok(())
}

/// Time in the monitor, by object manager and by call.
fn calls(record: &Record) -> Sheet {
    let mut sheet = Sheet::new(
        "Time in the monitor, by object manager and by call",
        &[
            ("object manager", 0, false),
            ("call", 0, false),
            ("calls", 0, true),
            ("ms", 0, true),
            ("µs each", 1, true),
        ],
    );
    let mut row = |manager: &str, call: &str, times: u64, seconds: f64| {
        let each = seconds * 1e6 / times.max(1) as f64;
        sheet.push(vec![
            manager.into(),
            call.into(),
            Cell::number(times.to_string(), times as f64),
            Cell::number(format!("{:.2}", seconds * 1e3), seconds),
            Cell::number(format!("{each:.1}"), each),
        ]);
    };
    for manager in ["file", "process", "socket"] {
        let mine = || record.spent.iter().filter(|it| it.manager == manager);
        // The sum of nothing is -0.
        let seconds = 0.0 + mine().map(|it| it.seconds).sum::<f64>();
        let times = mine().map(|it| it.times).sum();
        row(manager, "all", times, seconds);
        mine().for_each(|it| row(manager, &it.call, it.times, it.seconds));
    }
    sheet.notes.push(
        "From receiving a call to having answered it; waking the monitor and the program comes on top, about as much \
         for every call."
            .to_owned(),
    );
    sheet
}

fn places(shares: &[Share]) -> Sheet {
    let mut sheet = Sheet::new(
        "On what",
        &[("call", 0, false), ("place", 0, false), ("share of the time in the monitor", 0, true)],
    );
    for Share { call, place, share } in shares.iter().take(PLACES) {
        let cells = Cell::number(format!("{:.1} %", share * 100.0), *share);
        sheet.push(vec![call.as_str().into(), place.as_str().into(), cells]);
    }
    sheet.notes.push(
        "The time of a call is divided among places by the number of its decisions there."
            .to_owned(),
    );
    sheet
}

/// The time of each call, divided among the places that its decisions were about.
fn shares(spent: &[Spent], decisions: &[Decision], workspace: &Path) -> Vec<Share> {
    let mut counted: BTreeMap<(&str, String), f64> = BTreeMap::new();
    let mut of_call: BTreeMap<&str, f64> = BTreeMap::new();
    for decision in decisions {
        let place = place(&decision.object, &decision.tclass, workspace);
        *counted.entry((&decision.call, place)).or_default() += 1.0;
        *of_call.entry(&decision.call).or_default() += 1.0;
    }
    let all: f64 = spent.iter().map(|it| it.seconds).sum();
    let share = |((call, place), count): ((&str, String), f64)| {
        let seconds = spent.iter().find(|it| it.call == call)?.seconds;
        let share = seconds / all * count / of_call.get(call)?;
        Some(Share { call: call.to_owned(), place, share })
    };
    let mut shares: Vec<Share> = counted.into_iter().filter_map(share).collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

/// The workspace, two names of a directory's path from the root, or what kind of thing it is.
fn place(object: &str, class: &str, workspace: &Path) -> String {
    let path = Path::new(object);
    if path.starts_with(workspace) {
        return "the workspace".to_owned();
    }
    if !path.is_absolute() {
        return format!("objects of class {class}");
    }
    let path = if class == "dir" { path } else { path.parent().unwrap_or(path) };
    let names = path.components().filter(|part| matches!(part, Component::Normal(_)));
    let names: Vec<String> =
        names.take(2).map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    format!("/{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_divided_among_the_places_that_decisions_were_about() {
        let spent = |call: &str, seconds| Spent {
            manager: "file".to_owned(),
            call: call.to_owned(),
            times: 4,
            seconds,
        };
        let decision = |call: &str, object: &str| Decision {
            call: call.to_owned(),
            object: object.to_owned(),
            tclass: "file".to_owned(),
        };
        let found = shares(
            &[spent("openat", 0.8), spent("execve", 0.2)],
            &[
                decision("openat", "/usr/include/stdio.h"),
                decision("openat", "/usr/include/x86_64-linux-gnu/bits/types.h"),
                decision("openat", "/usr/include/stdlib.h"),
                decision("openat", "/w/a.c"),
                decision("execve", "/usr/bin/as"),
            ],
            Path::new("/w"),
        );
        let said: Vec<String> = found.iter().map(Share::said).collect();
        assert_eq!(said[0], "60 % of the time in the monitor is `openat` of /usr/include");
        assert!(
            said.contains(&"20 % of the time in the monitor is `openat` of the workspace".into())
        );
        assert!(said.contains(&"20 % of the time in the monitor is `execve` of /usr/bin".into()));
    }

    #[test]
    fn what_has_no_path_is_named_by_its_class() {
        assert_eq!(place("127.0.0.1:80", "endpoint", Path::new("/w")), "objects of class endpoint");
        assert_eq!(place("/etc", "dir", Path::new("/w")), "/etc");
        assert_eq!(place("/dev/null", "chr_file", Path::new("/w")), "/dev");
    }
}
