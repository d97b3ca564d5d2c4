//! `dewar report`: what a run did.

mod page;

use crate::{
    explain::heading,
    groups::groups,
    output,
    past_runs::took,
    run::document::{RunDocument, moment, time},
    run::{Journal, RunRecord, tell_planted},
    words::denied,
};
use anyhow::Context as _;
use clap::Args;
use cli::{
    look::{self, BAD, FAINT, NAME, STRONG, paint},
    output_file,
};
use monitor::{Deed, DeedKind, visible};
use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf};

const EXAMPLES: &str = "\
Examples:
  dewar run -p agent -- claude; dewar report
  dewar report ci -o report.html           one page with a timeline, for a browser
  dewar report --json | jq -r '.deeds[] | select(.kind == \"wrote\") | .object'
  dewar report --json | jq '.planted[].path'

What was written, removed, executed and contacted is noted where the monitor grants it. Reading
is not noted, nor what the kernel grants alone in mode `fast`. The objects of a kind are kept up
to 2,000, and counted beyond.

Exit status: 0; 2 for wrong use, or no such run; 125 if the page cannot be written.";

/// Tell what a run did.
///
/// Files written and names removed, programs executed, hosts and sockets contacted, denials,
/// changes of its policy; and what programs outside would execute because of it: new or changed
/// hooks, configuration, tasks and instructions, repositories, links that lead out of the
/// workspace, set-user-ID bits that were asked for, programs in the directories of PATH. The last
/// is looked for where the profile sets `files.guard`, and told as it was when the run ended.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// The run: its id, the beginning of it, or its name [default: the
    /// run that ended last]
    run: Option<String>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,

    /// Write one self-contained page of HTML, or print it for `-`
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,

    /// Leave nothing out of long lists
    #[arg(long)]
    all: bool,
}

/// Carries out `dewar report`.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let record = Journal::find(args.run.as_deref())?;
    if args.json {
        return Ok(output::print(output::json(&RunDocument::of(&record))?.as_bytes())?);
    }
    match &args.output {
        Some(path) if path.as_os_str() == "-" => Ok(output::print(page::page(&record).as_bytes())?),
        Some(path) => output_file::replace(path, page::page(&record).as_bytes())
            .with_context(|| format!("cannot write the report to `{}`", path.display())),
        None => {
            let width = look::columns().unwrap_or(usize::MAX);
            Ok(look::show(&tell(&record, if args.all { usize::MAX } else { MOST_LINES }, width)?)?)
        }
    }
}

/// How many runs began inside of one.
fn runs_inside(count: u32) -> String {
    match count {
        1 => "1 run began inside of it; what it did is listed here, too".to_owned(),
        _ => format!("{count} runs began inside of it; what they did is listed here, too"),
    }
}

/// Lines of one list without `--all`.
const MOST_LINES: usize = 12;

/// The report, for people.
pub(crate) fn tell(
    record: &RunRecord,
    most: usize,
    width: usize,
) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    text.push_str(&heading(record, width));
    let name = record.name.as_ref().map_or(String::new(), |name| format!(" ({})", visible(name)));
    write!(text, "  run {}{name}", paint(NAME, &visible(&record.id)))?;
    if let Some(at) = time(record.started) {
        write!(text, ", started {at}, took {}", took(record.time - record.started))?;
    }
    writeln!(text)?;
    if record.runs_inside > 0 {
        writeln!(text, "  {}", runs_inside(record.runs_inside))?;
    }
    for (kind, title) in [
        (DeedKind::Executed, "programs executed"),
        (DeedKind::Wrote, "files written"),
        (DeedKind::Removed, "names removed"),
        (DeedKind::Contacted, "hosts and sockets contacted"),
        (DeedKind::Bound, "addresses bound"),
    ] {
        tell_deeds(&mut text, record, (kind, title), most, width)?;
    }
    tell_denials(&mut text, record, most, width)?;
    if !record.changes.is_empty() {
        writeln!(text, "\n{}", paint(STRONG, "changes of its policy"))?;
    }
    for change in &record.changes {
        let line = format!("{}  {}", moment(change.when), visible(&change.what));
        writeln!(text, "  {}", look::cut(&line, width.saturating_sub(2)))?;
    }
    writeln!(text, "\n{}", paint(STRONG, "what programs outside would execute because of it"))?;
    let told = tell_planted(&record.planted, record.planted_more, true);
    match (record.guarded, told.is_empty()) {
        (false, _) => writeln!(
            text,
            "  not looked for: the profile sets no guard (`files.guard = \"host-trusted\"`)"
        )?,
        (true, true) => {
            writeln!(
                text,
                "  nothing was made or changed by a name that programs outside are known to execute"
            )?;
        }
        (true, false) => told.lines().try_for_each(|line| {
            let pad = line.len() - line.trim_start().len();
            let words = line.trim_start().split(' ');
            writeln!(text, "  {:pad$}{}", "", look::fill(words, pad + 4, width))
        })?,
    }
    for note in caveats(record) {
        let note = look::fill(note.split(' '), 2, width);
        writeln!(text, "\n{FAINT}* {note}{FAINT:#}")?;
    }
    Ok(text)
}

/// What the record cannot tell.
fn caveats(record: &RunRecord) -> Vec<String> {
    let mut notes = Vec::new();
    if record.mode == "fast" {
        notes.push(
            "in mode `fast` the kernel grants alone what its envelope is exact about: that is not listed".to_owned(),
        );
    }
    if record.mode.is_empty() {
        notes.push("an older Dewar made this record, and noted denials only".to_owned());
    }
    for (kind, more) in &record.deeds_more {
        let kind = crate::run::document::kind_name(*kind);
        notes.push(format!("{more} more of what it {kind} was counted, not kept"));
    }
    if !record.unrecorded.is_empty() {
        notes.push(format!(
            "no record is left of what is refused by {}",
            record.unrecorded.join("; by ")
        ));
    }
    notes
}

fn tell_deeds(
    text: &mut String,
    record: &RunRecord,
    (kind, title): (DeedKind, &str),
    most: usize,
    width: usize,
) -> std::fmt::Result {
    let deeds: Vec<&Deed> = record.deeds.iter().filter(|deed| deed.kind == kind).collect();
    if deeds.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n{STRONG}{title}{STRONG:#} {FAINT}({}){FAINT:#}", deeds.len())?;
    if deeds.len() <= most || matches!(kind, DeedKind::Contacted | DeedKind::Bound) {
        for deed in deeds.iter().take(most) {
            let times =
                if deed.count > 1 { format!("  {} times", deed.count) } else { String::new() };
            let line = format!(
                "{:16}{}{times}",
                look::cut(&visible(&deed.comm), 15),
                visible(&deed.object)
            );
            writeln!(text, "  {}", look::cut(&line, width.saturating_sub(2)))?;
        }
        return more(text, deeds.len().saturating_sub(most), "");
    }
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for deed in &deeds {
        let (place, name) = deed.object.rsplit_once('/').unwrap_or(("", &deed.object));
        places.entry(place).or_default().push(name);
    }
    for (place, names) in places.iter().take(most) {
        let line =
            format!("{:>5}  {}/  {}", names.len(), visible(place), visible(&names.join(" ")));
        writeln!(text, "  {}", look::cut(&line, width.min(160).saturating_sub(2)))?;
    }
    more(text, places.len().saturating_sub(most), " directories")
}

fn more(text: &mut String, more: usize, of: &str) -> std::fmt::Result {
    match more {
        0 => Ok(()),
        more => writeln!(text, "  {FAINT}and {more} more{of}; --all lists them{FAINT:#}"),
    }
}

fn tell_denials(
    text: &mut String,
    record: &RunRecord,
    most: usize,
    width: usize,
) -> std::fmt::Result {
    writeln!(text, "\n{STRONG}denials{STRONG:#} {FAINT}({}){FAINT:#}", record.denied_in_all())?;
    let groups = groups(&record.denials);
    if groups.is_empty() {
        writeln!(text, "  none was recorded")?;
    }
    for group in groups.iter().take(most) {
        let it = &group.members[0].1.record;
        let (comm, pattern) = (visible(&it.comm), visible(&group.pattern));
        let line = format!("{comm} may not {} {pattern}", denied(it));
        let times = match group.times() {
            1 => String::new(),
            times => format!(", {times} times"),
        };
        let line = look::cut(&line, width.saturating_sub(2 + times.len()));
        writeln!(text, "  {BAD}{line}{BAD:#}{times}")?;
    }
    more(text, groups.len().saturating_sub(most), " kinds")?;
    if !groups.is_empty() {
        let run = visible(&record.id);
        writeln!(
            text,
            "  {FAINT}`dewar explain {run}` tells why, and what would allow it{FAINT:#}"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_is_as_it_was_reviewed() {
        let record = crate::screens::record();
        crate::screens::screen("report", |width| tell(&record, MOST_LINES, width).unwrap());
    }
}
