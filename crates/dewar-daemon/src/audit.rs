//! `dewar audit`: the journal, searched.

use crate::daemon::place;
use ::daemon::{
    Administration, Called, ClientError, DaemonDirs, Filter, Journal, JournalEntry, JournalError,
    UNKNOWN,
};
use anyhow::{Context as _, bail};
use cli::{
    args::AuditArgs,
    failure::Usage,
    output::{self, tell as say},
};
use flask::{visible, visible_json};
use monitor::Record;
use rustix::process::geteuid;
use std::{
    path::Path,
    thread,
    time::{Duration, UNIX_EPOCH},
};

/// Entries read at once.
const MOST: u32 = 1000;

/// How often the journal is looked at with --follow.
const TICK: Duration = Duration::from_millis(200);

/// Carries out `dewar audit`.
pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<()> {
    let place = place(args.system)?;
    flush(&place);
    let path = place.journal();
    let there = path.try_exists().with_context(|| {
        let whose = if args.system { "; root reads that of all users" } else { "" };
        format!("cannot look for the journal `{}`{whose}", path.display())
    })?;
    if !there {
        bail!(
            "there is no journal at `{}`: runs that use a `dewar daemon` fill it",
            path.display()
        );
    }
    search(args, &path).map_err(|error| match error.downcast_ref::<JournalError>() {
        Some(damage) if damage.is_damage() => error.context(format!(
            "`{}` cannot be read: the next `dewar daemon` sets it aside and begins a new one; `sqlite3 FILE .recover` reads what \
             is left of it",
            path.display()
        )),
        _ => error,
    })
}

fn search(args: &AuditArgs, path: &Path) -> anyhow::Result<()> {
    let journal =
        Journal::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let filter = filter(args, &journal)?;
    if let Some((records, until)) = journal.rotated()?
        && args.since.is_none_or(|since| since < until)
    {
        say!(
            "dewar: {records} records up to {} were thrown away to bound the journal",
            time(until)
        );
    }
    let mut last = 0;
    loop {
        let entries = journal.find(&filter, last, MOST)?;
        let mut text = String::new();
        for entry in &entries {
            text.push_str(&if args.json { line(entry)? } else { tell(entry) });
            text.push('\n');
        }
        if !output::print_while_read(text.as_bytes())? {
            return Ok(());
        }
        last = entries.last().map_or(last, |entry| entry.id);
        match (entries.is_empty(), args.follow) {
            (true, true) => thread::sleep(TICK),
            (true, false) => break,
            (false, _) => {}
        }
    }
    match &args.domain {
        Some(domain) if last == 0 => tell_of_domains(&journal, domain),
        _ => Ok(()),
    }
}

/// Says so if the journal has no record of `domain` at all: it may be misspelt.
fn tell_of_domains(journal: &Journal, domain: &str) -> anyhow::Result<()> {
    let domains = journal.domains()?;
    let is_known =
        domains.iter().any(|known| known == domain || known.strip_suffix("_t") == Some(domain));
    if !is_known {
        let known = if domains.is_empty() { "none".to_owned() } else { domains.join(", ") };
        say!(
            "dewar: the journal has no record of a domain `{}`; of these it has: {}",
            visible(domain),
            visible(&known)
        );
    }
    Ok(())
}

/// Has the daemon take in what waits in spools; says so if it cannot.
fn flush(place: &DaemonDirs) {
    let error = match Administration::connect(place).and_then(|mut daemon| daemon.flush()) {
        Ok(()) => return,
        Err(ClientError::Absent(_)) => "no daemon runs".to_owned(),
        Err(error) => error.to_string(),
    };
    let waiting = std::fs::read_dir(place.state.join("spool")).map_or(0, Iterator::count);
    if waiting > 0 {
        let runs = if waiting == 1 { "1 run".into() } else { format!("{waiting} runs") };
        say!("dewar: records of {runs} waiting for the daemon are not shown: {error}");
    }
}

fn filter(args: &AuditArgs, journal: &Journal) -> anyhow::Result<Filter> {
    let run = match args.run.as_deref() {
        Some("last") => match journal.last_run(geteuid().as_raw())? {
            Some(run) => Some(run.id),
            None => bail!(Usage("the journal knows no run of yours".into())),
        },
        Some(text) => match journal.run_called(text)? {
            Called::One(run) => Some(run),
            Called::Several(runs) => {
                let some: Vec<_> = runs.iter().take(5).map(String::as_str).collect();
                bail!(Usage(format!(
                    "`{text}` stands for more than one run: {}{}; name one by its whole number",
                    some.join(", "),
                    if runs.len() > some.len() { ", …" } else { "" }
                )));
            }
            Called::None => bail!(Usage(format!(
                "the journal knows no run `{text}`: name one by its number, the beginning of it, what `dewar run --name` called \
                     it, or `last`"
            ))),
        },
        None => None,
    };
    let (domain, object) = (args.domain.clone(), args.object.clone());
    Ok(Filter { run, domain, object, since: args.since, denied: args.denied })
}

fn time(seconds: f64) -> String {
    // Behind the year 9999 it cannot be written.
    let writable = Some(seconds).filter(|seconds| *seconds < 253_402_300_800.0);
    let time = writable.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = time.and_then(|it| UNIX_EPOCH.checked_add(it));
    time.map_or_else(String::new, |time| humantime::format_rfc3339_millis(time).to_string())
}

/// An entry as JSON.
fn line(entry: &JournalEntry) -> serde_json::Result<String> {
    let mut value = if entry.lost > 0 {
        let lost = (entry.lost != UNKNOWN).then_some(entry.lost);
        serde_json::json!({ "time": entry.time, "lost": lost, "reason": entry.record })
    } else {
        serde_json::from_str(&entry.record)?
    };
    value["time"] = time(entry.time).into();
    value["run"] = entry.run.clone().into();
    Ok(visible_json(&value.to_string()))
}

/// An entry for people.
fn tell(entry: &JournalEntry) -> String {
    let head = format!("{} {}", time(entry.time), entry.run);
    let Ok(record) = serde_json::from_str::<Record>(&entry.record) else {
        let JournalEntry { lost, record, .. } = entry;
        let lost = match *lost {
            UNKNOWN => "nobody knows how many".to_owned(),
            lost => lost.to_string(),
        };
        return format!("{head} MISSING: {lost} records: {}", visible(record));
    };
    let verdict = if record.granted { "granted" } else { "denied" };
    let what = if record.granted { &record.requested } else { &record.missing };
    let times = if record.count > 1 { format!(" ({} times)", record.count) } else { String::new() };
    let type_of = |context: &str| flask::type_of(context).to_owned();
    visible(&format!(
        "{head} {verdict} {}[{}] {} {{ {} }} {} {} {}{times}",
        record.comm,
        record.pid,
        type_of(&record.scontext),
        what.join(" "),
        record.tclass,
        type_of(&record.tcontext),
        record.object,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_chose_cannot_steer_the_terminal() {
        let record = Record { object: "\u{1b}[2J\n".into(), ..Record::default() };
        let record = serde_json::to_string(&record).unwrap();
        let entry = JournalEntry { id: 1, run: "r".into(), time: 0.0, lost: 0, record };
        for text in [tell(&entry), line(&entry).unwrap()] {
            assert!(text.contains(r"\u001b[2J") && !text.contains(char::is_control), "{text:?}");
        }
        for time in [-1.0, f64::INFINITY, 253_402_300_800.0, 1e30] {
            assert!(tell(&JournalEntry { time, ..entry.clone() }).starts_with(" r "), "{time}");
        }
        let gap = JournalEntry { lost: 3, record: "no room".into(), ..entry };
        assert!(tell(&gap).contains("MISSING: 3 records: no room"));
        assert!(line(&gap).unwrap().contains("\"lost\":3"));
        let unknown = JournalEntry { lost: UNKNOWN, ..gap };
        assert!(tell(&unknown).contains("MISSING: nobody knows how many records"));
        assert!(line(&unknown).unwrap().contains("\"lost\":null"));
    }
}
