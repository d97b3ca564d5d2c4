//! What `dewar run` says at the end, on standard error.

use super::{Decisions, RunRecord, RunRequest, document::RunDocument, misspelt, planted, script};
use crate::{output::tell, words};
use cli::look;
use monitor::visible;
use rustix::io::Errno;
use std::{
    ffi::OsStr,
    io::IsTerminal as _,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::Path,
};

/// Remarks that are made at the end of a run; `dewar explain` makes all.
const MOST_REMARKS: usize = 3;

/// What a shell shows of a command that `SIGINT` has ended.
const INTERRUPTED: i32 = 128 + 2;

/// How `dewar explain` knows a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Recorded {
    /// As the last one.
    Last,
    /// By its name: another may end before it is asked about.
    BesideOthers,
    /// Not at all: the record could not be written.
    Not,
}

/// Prints it, but for the remark that was `said` at the start.
pub(super) fn print(
    request: &RunRequest,
    record: &RunRecord,
    (recorded, said): (Recorded, Option<&String>),
) {
    if request.json {
        if let Ok(text) = serde_json::to_string(&RunDocument::of(record)) {
            tell!("{}", flask::visible_json(&text));
        }
        return;
    }
    if request.quiet {
        return;
    }
    if request.stats {
        tell!("{}", stats(record));
    }
    let lines = lines(record, (recorded, said));
    // The terminal has shown the key, and nothing has ended its line.
    if record.status == INTERRUPTED && !lines.is_empty() && std::io::stderr().is_terminal() {
        tell!("");
    }
    lines.iter().for_each(|line| tell!("dewar: {line}"));
}

/// What is said of a run without asking, but for the remark that was `said` at its start.
fn lines(record: &RunRecord, (recorded, said): (Recorded, Option<&String>)) -> Vec<String> {
    let mut lines: Vec<String> = lacking(record).collect();
    lines.extend(closing(record, recorded));
    lines.extend(record.another.clone());
    if record.status != 0 {
        let unsaid = record.remarks.iter().filter(|it| Some(*it) != said);
        lines.extend(unsaid.take(MOST_REMARKS).map(|it| visible(it)));
    }
    let planted = planted::tell(&record.planted, record.planted_more, false);
    lines.extend(planted.lines().map(str::to_owned));
    lines
}

/// Says why a command was not executed, and what to look at; where it is found outside of the run
/// alone, that it is `unseen` there.
pub(super) fn tell_not_executed(command: &OsStr, errno: Errno, unseen: Option<&Path>) {
    let shown = visible(&command.to_string_lossy());
    let look = match errno {
        Errno::NOENT => match (unseen, script::found(command)) {
            (Some(path), _) => {
                format!("{} is there, but not in this run", visible(&path.to_string_lossy()))
            }
            (_, Some(path)) => script::wrong(&path).unwrap_or_default(),
            (_, None) => {
                let is_sought = !command.as_bytes().contains(&b'/');
                let hint = misspelt::hint(command);
                let why = is_sought.then(|| "no directory of PATH has it in this run".to_owned());
                why.into_iter().chain(hint).collect::<Vec<_>>().join("; ")
            }
        },
        Errno::ACCESS => {
            let file = Path::new(command).metadata().ok();
            let file = file.filter(|_| command.as_bytes().contains(&b'/'));
            match file.map(|it| (it.is_dir(), it.permissions().mode() & 0o111)) {
                Some((true, _)) => "it is a directory".into(),
                Some((_, 0)) => format!("it is not executable: `chmod +x {shown}` makes it so"),
                _ => {
                    "`dewar explain` tells what was denied, `ls -l` whether it is executable".into()
                }
            }
        }
        Errno::NOEXEC => {
            "it is neither a program for this machine nor a script that begins with #!".into()
        }
        _ => String::new(),
    };
    let look = if look.is_empty() { look } else { format!("; {look}") };
    tell!("dewar: cannot execute `{shown}`: {errno}{look}");
}

/// How many decisions were made, where they were found, and what they took.
fn stats(record: &RunRecord) -> String {
    let sum = |count: fn(&Decisions) -> u64| record.decisions.iter().map(count).sum::<u64>();
    let (server, all) = (sum(|row| row.server), sum(|row| row.queries));
    let mut text = decisions(record);
    text += &format!("\nsecurity server reached by {server} of {all} queries");
    if let Some(line) = dearest(record) {
        text += &format!("\n{}", look::fill(line.split(' '), 0, 80));
    }
    text
}

/// What was denied, in one line; `None` if there is nothing to say.
fn closing(record: &RunRecord, recorded: Recorded) -> Option<String> {
    let Some(denial) = record.likeliest() else {
        let reads = record.unrecorded.iter().any(|layer| layer.starts_with("the envelope"));
        return (reads && record.status != 0).then(|| {
            "denied nothing that is on record, but what the kernel refused to read in mode `fast` leaves none; \
             `--mode all` shows it"
                .to_owned()
        });
    };
    let count = record.denied();
    let denied = &denial.record;
    let what = format!(
        "{} may not {} {}",
        visible(&denied.comm),
        words::denied(denied),
        visible(&denied.object)
    );
    let kept = match record.dropped {
        0 => String::new(),
        dropped => format!(" ({dropped} of them not kept)"),
    };
    let told = match (count, record.status) {
        (1, _) => format!("denied once: {what}"),
        // Then all of it is.
        _ if denied.natively => {
            format!("denied {count} times{kept}, all of it also without Dewar: {what}")
        }
        // Also one that somebody has ended has not failed.
        (_, 0 | 129 | 130 | 143) => format!("denied {count} times{kept}; the weightiest: {what}"),
        _ => format!("denied {count} times{kept}; likeliest to have mattered: {what}"),
    };
    let ends = match record.status {
        _ if denied.natively && count > 1 && recorded == Recorded::Not => return Some(told),
        _ if denied.natively && count > 1 => "`dewar explain` tells why",
        _ if denied.natively && recorded == Recorded::Not => "without Dewar you may not either",
        0 if recorded == Recorded::Not => "the command succeeded all the same",
        _ if recorded == Recorded::Not => return Some(told),
        _ if denied.natively => "without Dewar you may not either; `dewar explain` tells why",
        0 => "the command succeeded all the same; `dewar explain` tells why",
        // Whatever policy says.
        _ if !denied.refused_by.is_empty() => "`dewar explain` tells why and what to do instead",
        _ => "`dewar explain` tells why and what would allow it",
    };
    let more = match record.unspoken() {
        more @ 1.. if record.status != 0 => {
            format!(", and of {more} more that programs mostly do without")
        }
        _ => String::new(),
    };
    let call = format!("`dewar explain {}`", visible(record.called()));
    let by_name = recorded == Recorded::BesideOthers;
    let ends = if by_name { ends.replace("`dewar explain`", &call) } else { ends.to_owned() };
    Some(format!("{told}; {ends}{more}"))
}

/// What the kernel refused root, and what would help.
pub(crate) fn lacking(record: &RunRecord) -> impl Iterator<Item = String> + '_ {
    record.lacking.iter().map(|(capability, count)| {
        let times = if *count == 1 { "once".into() } else { format!("{count} times") };
        format!(
            "the kernel refused root {times} what policy grants, for want of a capability; in a profile: capabilities = [\"{capability}\"]"
        )
    })
}

/// The table "resolution of requested decisions".
pub(crate) fn decisions(record: &RunRecord) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    let mut header = vec!["object manager", "queries", "by hint", "by cache", "by server"];
    let is_accounted = !record.spent.is_empty();
    if is_accounted {
        header.extend(["calls", "time"]);
    }
    table.set_header(&header);
    for row in &record.decisions {
        let counts = [row.queries, row.hint, row.cache, row.server].map(|count| count.to_string());
        let mut cells: Vec<String> = std::iter::once(row.manager.clone()).chain(counts).collect();
        if is_accounted {
            let mine = || record.spent.iter().filter(|spent| spent.manager == row.manager);
            cells.push(mine().map(|spent| spent.times).sum::<u64>().to_string());
            cells.push(milliseconds(mine().map(|spent| spent.seconds).sum()));
        }
        table.add_row(cells);
    }
    for column in 1..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// Which call deciding spent most on.
fn dearest(record: &RunRecord) -> Option<String> {
    let first = record.spent.first()?;
    let (times, seconds) = (record.spent.iter())
        .fold((0, 0.0), |(times, seconds), spent| (times + spent.times, seconds + spent.seconds));
    Some(format!(
        "the monitor answered {times} calls in {}; {} of them were {}, {:.0} % of the time",
        milliseconds(seconds),
        first.times,
        first.call,
        100.0 * first.seconds / seconds.max(f64::MIN_POSITIVE)
    ))
}

fn milliseconds(seconds: f64) -> String {
    // The sum of nothing is -0.
    format!("{:.1} ms", 0.0 + seconds * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Denial, counts::Spent};
    use monitor::Record;

    fn record(denied: &[(&str, &str)]) -> RunRecord {
        let denial = |(tclass, object): &(&str, &str)| {
            let record = Record {
                comm: "curl".into(),
                tclass: (*tclass).into(),
                object: (*object).into(),
                missing: vec!["read".into()],
                count: 50,
                ..Record::default()
            };
            Denial { record, profile_rules: Vec::new() }
        };
        RunRecord {
            denials: denied.iter().map(denial).collect(),
            status: 7,
            ..RunRecord::default()
        }
    }

    #[test]
    fn the_closing_line_names_what_mattered_and_counts_what_was_not_kept() {
        let mut record = record(&[("file", "/home/me/.curlrc"), ("endpoint", "192.0.2.1:443")]);
        let line = closing(&record, Recorded::Last).unwrap();
        assert!(line.contains("denied 100 times;") && line.contains("192.0.2.1:443"), "{line}");
        record.id = "4k7m2p9x".into();
        let line = closing(&record, Recorded::BesideOthers).unwrap();
        assert!(
            line.ends_with("`dewar explain 4k7m2p9x` tells why and what would allow it"),
            "{line}"
        );
        let line = closing(&record, Recorded::Not).unwrap();
        assert!(line.contains("192.0.2.1:443") && !line.contains("explain"), "{line}");
        for ended in [129, 130, 143] {
            record.status = ended;
            let line = closing(&record, Recorded::Last).unwrap();
            assert!(line.contains("denied 100 times; the weightiest: "), "{line}");
        }
        record.status = 7;
        record.dropped = 189_900;
        let line = closing(&record, Recorded::Last).unwrap();
        assert!(line.contains("denied 190000 times (189900 of them not kept)"), "{line}");
    }

    #[test]
    fn what_did_no_harm_or_fails_without_dewar_too_is_said_to() {
        let mut record = record(&[("file", "/home/me/.viminfo")]);
        record.status = 0;
        let line = closing(&record, Recorded::Last).unwrap();
        assert!(line.contains("the command succeeded all the same"), "{line}");
        let natively = Record { natively: true, probed: true, ..record.denials[0].record.clone() };
        record.denials[0].record = natively;
        assert_eq!(closing(&record, Recorded::Last), None);
        record.status = 1;
        let line = closing(&record, Recorded::Last).unwrap();
        assert!(line.contains("all of it also without Dewar: curl"), "{line}");
        record.denials[0].record.count = 1;
        let line = closing(&record, Recorded::Last).unwrap();
        assert!(line.contains("you may not either") && !line.contains("would allow"), "{line}");
    }

    #[test]
    fn what_deciding_took_is_told_by_object_manager_and_by_its_dearest_call() {
        let mut record = record(&[]);
        record.decisions = vec![Decisions { manager: "file".into(), ..Decisions::default() }];
        assert_eq!(dearest(&record), None);
        assert!(!decisions(&record).contains("time"));
        let spent = |manager: &str, call: &str, times, seconds| Spent {
            manager: manager.into(),
            call: call.into(),
            times,
            seconds,
        };
        record.spent =
            vec![spent("file", "openat", 90, 0.009), spent("process", "execve", 10, 0.001)];
        let line = dearest(&record).unwrap();
        let want = "answered 100 calls in 10.0 ms; 90 of them were openat, 90 % of the time";
        assert!(line.contains(want), "{line}");
        let table = decisions(&record);
        assert!(table.contains("calls") && table.contains("9.0 ms"), "{table}");
    }

    #[test]
    fn a_failure_in_mode_fast_is_never_said_to_be_without_denials() {
        let mut record = record(&[]);
        assert_eq!(closing(&record, Recorded::Last), None);
        record.unrecorded = vec!["the envelope: reading".into()];
        assert!(closing(&record, Recorded::Last).unwrap().contains("`--mode all` shows it"));
        record.status = 0;
        assert_eq!(closing(&record, Recorded::Last), None);
    }

    #[test]
    fn the_screen_is_as_it_was_reviewed() {
        let record = crate::screens::record();
        crate::screens::screen("run-stats", |_| stats(&record) + "\n");
    }
}
