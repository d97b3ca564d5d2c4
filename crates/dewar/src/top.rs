//! `dewar top`: what runs decide, second by second.

mod screen;
mod view;

use crate::{
    control::{ChangeResult, Counters, Reply, Request, Run, RunArg, Unheard},
    output,
    run::{Decisions, document::moment},
};
use clap::Args;
use cli::look;
use flask::visible_json;
use monitor::{RevokeMode, visible};
use profile::{AmendedObject, Amendment, AmendmentKind};
use screen::{Event, Screen};
use serde::Serialize;
use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    io::Write as _,
    os::unix::net::UnixStream,
    sync::mpsc::{Receiver, sync_channel},
    thread,
    time::{Duration, Instant, SystemTime},
};
use view::View;

const EXAMPLES: &str = "\
Examples:
  dewar top                        until you press q or Ctrl-C
  dewar top --once                 one table
  dewar top --json | jq .runs      a line of JSON each second
  dewar top > log                  a table each second

Exit status: 0; 2 for wrong use; 125 if the runs of this user cannot be found.";

/// Watch what runs decide: how many decisions a second, where they were found, and what was denied.
///
/// For each run and each of its object managers: decisions a second by hint, by cache and by the
/// security server; and for each run its denials so far and its processes by domain. On a terminal,
/// runs are selected by the arrow keys, sorted by `s`, and `r` takes everything from the selected
/// one, once that is confirmed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// Print a line of JSON for each interval
    #[arg(long)]
    json: bool,

    /// Print one interval, and end
    #[arg(long)]
    once: bool,

    /// How long an interval is, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    interval: f64,
}

/// Reads `--interval`.
fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.05..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "write seconds, from 0.05 to 3600".into())
}

/// The version of [`Sample`] as JSON.
const SCHEMA: &str = "dewar/top/1";

/// What happened in an interval: a line of `dewar top --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Sample {
    /// Which document this is, and in which version.
    schema: &'static str,
    /// When the interval ended.
    at: String,
    /// How long it was.
    seconds: f64,
    runs: Vec<RunSample>,
    /// Runs that go on, as far as anybody knows, and did not answer.
    unheard: Vec<UnheardSample>,
}

/// A run that did not answer.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UnheardSample {
    id: String,
    name: Option<String>,
    /// The monitor's process.
    pid: u32,
    /// Whether its monitor is stopped; else it goes on, and why it does not answer is not known.
    stopped: bool,
    /// How the run goes on, or ends.
    remedy: String,
}

/// What one run did in it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunSample {
    id: String,
    name: Option<String>,
    command: Vec<String>,
    /// By object manager, a second.
    rates: Vec<Rate>,
    /// Since the run started.
    denied: u64,
    /// The kind of denial that is most frequent.
    most_denied: Option<String>,
    /// Processes by domain.
    domains: BTreeMap<String, usize>,
}

/// Decisions of one object manager, a second.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Rate {
    manager: String,
    queries: f64,
    /// How many of them were found by hint, in the cache, and by the security server.
    hint: f64,
    cache: f64,
    server: f64,
}

/// Carries out `dewar top`.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<()> {
    let interval = Duration::from_secs_f64(args.interval);
    if !args.json && !args.once && Screen::is_there() {
        return live(interval);
    }
    for sample in samples(interval, None)? {
        let sample = sample?;
        let text = if args.json {
            visible_json(&serde_json::to_string(&sample)?) + "\n"
        } else {
            tell(&sample, look::columns().unwrap_or(usize::MAX))?
        };
        if !output::print_while_read(text.as_bytes())? || args.once {
            break;
        }
    }
    Ok(())
}

/// Shows sample after sample on the terminal, until somebody has seen enough.
fn live(interval: Duration) -> anyhow::Result<()> {
    let (bell, ring) = UnixStream::pair()?;
    let samples = samples(interval, Some(ring))?;
    bell.set_nonblocking(true)?;
    let Some(screen) = Screen::open()? else { return Ok(()) };
    let mut view = View::default();
    loop {
        screen.draw(&view.text(screen.columns())?, &view.footer())?;
        match screen.wait(&bell)? {
            Event::Quit => return Ok(()),
            Event::Changed => {}
            Event::Keys(keys) => {
                for key in keys {
                    if let Some(run) = view.key(key) {
                        view.say(revoke(&run));
                    }
                }
            }
            Event::Rung => {
                if let Some(sample) = samples.try_iter().last() {
                    view.take(sample?);
                }
            }
        }
    }
}

/// Takes everything from a run; what came of it.
fn revoke(run: &str) -> String {
    let amendment = Amendment::new(AmendmentKind::Revoke, None, AmendedObject::All);
    let found = Run::find(&RunArg { run: Some(run.to_owned()) });
    let done = found.and_then(|mut it| it.change(Request::Amend(amendment, RevokeMode::Repair)));
    match done.map(|change| change.outcome) {
        Ok(ChangeResult::Receipt(receipt)) if receipt.complete => {
            format!("everything was taken from {run}")
        }
        Ok(ChangeResult::Receipt(_)) => {
            format!("{run} can still use something: `dewar revoke {run} --all` tells what")
        }
        Ok(ChangeResult::Failed(why)) => format!("nothing was revoked: {why}"),
        Err(error) => format!("nothing was revoked: {error:#}"),
    }
}

/// A sample at the end of each interval, taken by a thread of its own: a run that does not answer
/// keeps nobody from leaving. The thread rings the bell for each, and ends when nobody takes them
/// any more.
fn samples(
    interval: Duration,
    mut bell: Option<UnixStream>,
) -> std::io::Result<Receiver<anyhow::Result<Sample>>> {
    let (sender, samples) = sync_channel(1);
    let mut last = None;
    let mut sample = move || {
        let (began, before) = match last.take() {
            Some(last) => last,
            None => (Instant::now(), observe()?),
        };
        thread::sleep(interval);
        let (ended, now) = (Instant::now(), observe()?);
        let sample = Sample::new(ended - began, &before, &now);
        last = Some((ended, now));
        Ok(sample)
    };
    let take = move || {
        while sender.send(sample()).is_ok() {
            // Nobody listens any more: then nobody takes the next sample, either.
            let _ = bell.as_mut().map(|bell| bell.write_all(b"."));
        }
    };
    thread::Builder::new().name("samples".into()).spawn(take)?;
    Ok(samples)
}

/// Every run, with what it has decided so far.
struct Observed {
    runs: Vec<(Run, Counters)>,
    unheard: Vec<Unheard>,
}

fn observe() -> anyhow::Result<Observed> {
    let (all, mut unheard) = Run::and_unheard()?;
    let mut runs = Vec::new();
    for mut run in all {
        match run.ask(Request::Counters) {
            Ok(Reply::Counters(counters)) => runs.push((run, counters)),
            _ if run.goes_on() => unheard.push(run.into_unheard()),
            // One that has ended since is left out.
            _ => {}
        }
    }
    Ok(Observed { runs, unheard })
}

impl Sample {
    fn new(time: Duration, last: &Observed, now: &Observed) -> Self {
        let seconds = time.as_secs_f64();
        let before: HashMap<&str, &Counters> =
            last.runs.iter().map(|(run, counters)| (run.status.id.as_str(), counters)).collect();
        let one = |(run, counters): &(Run, Counters)| {
            let before = before.get(run.status.id.as_str()).copied();
            RunSample {
                id: run.status.id.clone(),
                name: run.status.name.clone(),
                command: run.status.command.clone(),
                rates: rates(before, counters, seconds),
                denied: counters.denied,
                most_denied: counters.most_denied.clone(),
                domains: counters.domains.clone(),
            }
        };
        let at = moment(SystemTime::now());
        let runs = now.runs.iter().map(one).collect();
        let unheard = now.unheard.iter().map(UnheardSample::of).collect();
        Self { schema: SCHEMA, at, seconds, runs, unheard }
    }
}

impl UnheardSample {
    fn of(run: &Unheard) -> Self {
        Self {
            id: run.id.clone(),
            name: run.name().map(ToOwned::to_owned),
            pid: run.pid,
            stopped: run.is_stopped,
            remedy: run.remedy(),
        }
    }

    /// What is said of it.
    fn line(&self) -> String {
        let name = self.name.as_ref().map_or(String::new(), |name| format!(" ({})", visible(name)));
        let how = if self.stopped { "is stopped" } else { "does not answer" };
        format!("{}{name} {how}: {}", visible(&self.id), self.remedy)
    }
}

/// How much more a second than `before`; a run that was not there before began with nothing.
fn rates(before: Option<&Counters>, now: &Counters, seconds: f64) -> Vec<Rate> {
    let none = Decisions::default();
    let rate = |now: &Decisions| {
        let known = before.and_then(|b| b.decisions.iter().find(|d| d.manager == now.manager));
        let before = known.unwrap_or(&none);
        let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        Rate {
            manager: now.manager.clone(),
            queries: per_second(now.queries, before.queries),
            hint: per_second(now.hint, before.hint),
            cache: per_second(now.cache, before.cache),
            server: per_second(now.server, before.server),
        }
    };
    now.decisions.iter().map(rate).collect()
}

pub(crate) fn tell(sample: &Sample, width: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    if sample.runs.is_empty() && sample.unheard.is_empty() {
        writeln!(text, "nothing runs")?;
    }
    for run in &sample.unheard {
        writeln!(text, "{}", look::fill(run.line().split(' '), 2, width))?;
    }
    for run in &sample.runs {
        let name = run.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        let line = format!("{}{name}  {}", run.id, visible(&run.command.join(" ")));
        writeln!(text, "{}", look::cut(&line, width))?;
        about(&mut text, run, width)?;
        writeln!(text, "{}\n", table(&run.rates))?;
    }
    Ok(text)
}

/// The processes and the denials of a run.
fn about(text: &mut String, run: &RunSample, width: usize) -> std::fmt::Result {
    let domains = run.domains.iter().map(|(name, count)| format!("{name} {count}"));
    let domains = domains.collect::<Vec<_>>().join(", ");
    let line = format!("processes by domain: {domains}; denied so far: {}", run.denied);
    writeln!(text, "  {}", look::fill(line.split(' '), 4, width))?;
    if let Some(most) = &run.most_denied {
        let line = format!("  most often: {}", visible(most));
        writeln!(text, "{}", look::cut(&line, width))?;
    }
    Ok(())
}

fn table(rates: &[Rate]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["  a second", "queries", "by hint", "by cache", "by server"]);
    for rate in rates {
        let counts = [rate.queries, rate.hint, rate.cache, rate.server].map(|n| format!("{n:.0}"));
        table.add_row(std::iter::once(format!("  {}", rate.manager)).chain(counts));
    }
    for column in 1..5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(queries: u64) -> Counters {
        let manager = "file".to_owned();
        let file = Decisions { manager, queries, hint: queries / 2, ..Decisions::default() };
        Counters { decisions: vec![file], ..Counters::default() }
    }

    #[test]
    fn rates_are_what_came_since_and_all_of_a_new_run() {
        let found = |before: Option<Counters>| {
            rates(before.as_ref(), &counters(100), 2.0)[0].queries.round() as u64
        };
        assert_eq!((found(Some(counters(40))), found(None)), (30, 50));
        // Another run may have come to the same id.
        assert_eq!(found(Some(counters(400))), 0);
    }

    #[test]
    fn an_interval_is_within_reason() {
        assert!(interval("0.1").is_ok() && interval("60").is_ok());
        for bad in ["", "0", "-1", "NaN", "inf", "1e9"] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }
}
