//! `dewar explain`: what the last run was denied, why, and what would allow it.

mod known;
mod offered;
mod remedy;
#[cfg(test)]
mod tests;
mod undenied;

use crate::{
    control::{Begun, Run, unwritable},
    entries,
    groups::{Group, alone, groups},
    output,
    proposal::{self, Proposal, of_file},
    reasons::{self, NATIVELY},
    receipt,
    run::{Denial, Journal, RunRecord, document::RunDocument, lacking},
    so_far::{newer, so_far},
    words::{denied, exact},
};
use clap::Args;
use cli::look::{self, BAD, FAINT, GOOD, STRONG, paint};
use known::{Told, guarded};
use learn::Line;
use monitor::{Record, visible};
use offered::{can_be_given, offer};
use remedy::{in_profile, made_first, named_hosts, powers, without_address};
use std::{fmt::Write as _, path::Path};
use undenied::undenied;

const EXAMPLES: &str = "\
Examples:
  dewar run -- make; dewar explain
  dewar explain ci                     a run by its name, or the beginning of its id;
                                       also one that goes on
  dewar explain --all                  each denial for itself, however many
  dewar explain --toml                 the lines of a profile that would allow it
  dewar explain --json | jq '.denials[].object'

`dewar allow N` allows what is numbered [N].

Exit status: 0; 2 for wrong use, or if no such run has been recorded.";

/// Explain what a run was denied.
///
/// For each denial: who asked, for what, which rule of the profile or the absence of which rule
/// decided, and what would allow it. Denials of one kind whose objects lie together are told as
/// one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// The run: its id, the beginning of it, or its name [default: the run that ended last]
    run: Option<String>,

    /// Tell each denial for itself
    #[arg(long, conflicts_with_all = ["json", "toml"])]
    all: bool,

    /// Tell also what the layers refuse that leave no record
    #[arg(short, long, conflicts_with_all = ["json", "toml"])]
    verbose: bool,

    /// Print the whole record of the run as JSON
    #[arg(long)]
    json: bool,

    /// Print the lines of a profile that would allow it, each once
    #[arg(long, conflicts_with = "json")]
    toml: bool,
}

/// Carries out `dewar explain`.
pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let named = args.run.as_deref().filter(|run| *run != "last");
    let record = match named.map(Run::going_on).transpose()?.flatten() {
        Some(mut run) => so_far(&mut run)?,
        None => Journal::find(named)?,
    };
    let text = match (args.json, args.toml) {
        (true, _) => json(&record)?,
        (_, true) => fragment(&record)?,
        _ => {
            let width = look::columns().unwrap_or(usize::MAX);
            let layout = Layout { all: args.all, verbose: args.verbose, width };
            let before = named.is_none().then(|| left_out(&record)).flatten();
            let before = before.map(|text| look::fill(text.split(' '), 0, layout.width) + "\n");
            return Ok(look::show(&(before.unwrap_or_default() + &tell(&record, layout)?))?);
        }
    };
    Ok(output::print(text.as_bytes())?)
}

/// Which newer run is left out, and why.
fn left_out(record: &RunRecord) -> Option<String> {
    let ended = Begun::unrecorded().map(|it| it.told() + ". This is the run before:");
    let unwritable = || unwritable().map(|why| why + ". This is the last run that has a record:");
    ended.or_else(|| newer(record)).or_else(unwritable)
}

/// The record, with the lines that would allow what was denied.
fn json(record: &RunRecord) -> anyhow::Result<String> {
    let mut document = RunDocument::of(record);
    // A profile that is gone by now takes nothing from the record.
    if let Ok(fitting) = of_file(record) {
        let denials: Vec<&Denial> = record.denials.iter().collect();
        if let Ok(proposal) = Proposal::of(&fitting, &denials, &[]) {
            document.would_allow = Some(proposal.lines.iter().map(Line::alone).collect());
        }
    }
    Ok(output::json(&document)?)
}

/// The lines that would allow what was denied, as a profile that extends that of the run.
fn fragment(record: &RunRecord) -> anyhow::Result<String> {
    let fitting = of_file(record)?;
    let denials: Vec<&Denial> = record.denials.iter().collect();
    let proposal = Proposal::of(&fitting, &denials, &[])?;
    let mut edit = learn::Edit::of("")?;
    let judge = fitting.judge(&[])?;
    for line in &proposal.lines {
        let first = entries::made_first(line, &judge, &fitting.scope);
        let comment = first.map(|first| format!("{}; {first}", line.comment));
        edit.add(&Line {
            comment: comment.unwrap_or_else(|| line.comment.clone()),
            ..line.clone()
        })?;
    }
    if fitting.loses_loopback(&proposal.lines)? {
        edit.own_loopback();
    }
    let mut text: String = edit.text();
    for (denial, why) in &proposal.left {
        let (comm, object) = (visible(&denial.record.comm), visible(&denial.record.object));
        let missing = denied(&denial.record);
        writeln!(text, "# not here: {comm} may not {missing} {object}")?;
        writeln!(text, "#   {}", visible(why))?;
    }
    if record.denials.is_empty() {
        text.push_str("# no denial was recorded\n");
    }
    Ok(text)
}

/// Groups that are told without `--all`.
const MOST_GROUPS: usize = 25;

/// Objects of a group that are named.
const MOST_NAMED: usize = 3;

/// How much is told, and how wide.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) all: bool,
    pub(crate) verbose: bool,
    pub(crate) width: usize,
}

/// The record, for people.
pub(crate) fn tell(record: &RunRecord, layout: Layout) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    text.push_str(&heading(record, layout.width));
    let another = record.another.iter().cloned();
    for line in record.time_limit.iter().cloned().chain(lacking(record)).chain(another) {
        writeln!(text, "{}", look::fill(line.split(' '), 0, layout.width))?;
    }
    for remark in record.remarks.iter().filter(|_| record.status != 0 || record.goes_on) {
        writeln!(text, "{}", look::fill(visible(remark).split(' '), 0, layout.width))?;
    }
    if record.denials.is_empty() {
        let so_far = if record.goes_on { " so far" } else { "" };
        writeln!(text, "no denial was recorded{so_far}")?;
        for told in undenied(record) {
            writeln!(text, "{}", look::fill(told.split(' '), 0, layout.width))?;
        }
    }
    tell_denials(&mut text, &Told::of(record), layout)?;
    if let Some(line) = offer(record).filter(|_| record.goes_on) {
        writeln!(text, "\n{}", look::fill(line.split(' '), 0, layout.width))?;
    }
    if !record.changes.is_empty() {
        writeln!(text, "\nchanged while it ran:")?;
    }
    for change in &record.changes {
        text.push_str(&receipt::tell_dated(change, layout.width)?);
    }
    if record.dropped > 0 {
        writeln!(
            text,
            "\n{} more denials were not kept, between the first and the last",
            record.dropped
        )?;
    }
    // That is where the reason is to be found, where nothing was denied.
    let verbose = layout.verbose || record.denials.is_empty() && record.status != 0;
    tell_unrecorded(&mut text, &record.unrecorded, Layout { verbose, ..layout })?;
    Ok(text)
}

/// The layers that keep no record: by name, or with what each refuses.
fn tell_unrecorded(text: &mut String, layers: &[String], layout: Layout) -> std::fmt::Result {
    const TITLE: &str = "what leaves no record where it is refused:";
    if layers.is_empty() {
        return Ok(());
    }
    if !layout.verbose {
        let names = layers.iter().map(|layer| visible(layer.split(':').next().unwrap_or_default()));
        let names = names.collect::<Vec<_>>().join(", ");
        let line = format!("{TITLE} {names}; -v tells more");
        return writeln!(text, "\n{}", look::fill(line.split(' '), 2, layout.width));
    }
    writeln!(text, "\n{TITLE}")?;
    for layer in layers {
        let layer = visible(layer);
        writeln!(text, "  {}", look::fill(layer.split(' '), 4, layout.width.saturating_sub(2)))?;
    }
    Ok(())
}

/// What was run, under what, and how it ended: the first line of `explain` and of `report`.
pub(crate) fn heading(record: &RunRecord, width: usize) -> String {
    let (command, profile) = (visible(&record.command.join(" ")), visible(&record.profile));
    let status = record.status.to_string();
    let beside = "`` under : exit status ".len() + profile.chars().count() + status.len();
    let command = look::cut(&command, width.saturating_sub(beside).max(20));
    let ended = match (record.goes_on, record.status) {
        (true, _) => "it goes on".to_owned(),
        (_, 0) => format!("exit status {}", paint(GOOD, &status)),
        _ => format!("exit status {}", paint(BAD, &status)),
    };
    format!("`{STRONG}{command}{STRONG:#}` under {profile}: {ended}\n")
}

/// The denials in groups, or each for itself.
fn tell_denials(text: &mut String, told: &Told<'_>, layout: Layout) -> std::fmt::Result {
    let record = told.run;
    let each = record.denials.iter().enumerate();
    let groups = match layout.all {
        true => each.map(|(index, denial)| alone((denial.number(index), denial))).collect(),
        false => groups(&record.denials),
    };
    let most = if layout.all { usize::MAX } else { MOST_GROUPS };
    for group in groups.iter().take(most) {
        tell_group(text, (told, group), layout)?;
    }
    let hidden = groups.iter().skip(most);
    if let more @ 1.. = hidden.clone().count() {
        let times: u64 = hidden.map(Group::times).sum();
        writeln!(text, "\n{FAINT}and {more} kinds more, {times} times; --all tells them{FAINT:#}")?;
    }
    Ok(())
}

fn tell_group(
    text: &mut String,
    (run, group): (&Told<'_>, &Group<'_>),
    layout: Layout,
) -> std::fmt::Result {
    let (_, denial) = group.members[0];
    let objects = group.members.len();
    let numbers = look::cut(&group.numbers(), 40);
    write!(text, "\n{FAINT}[{numbers}]{FAINT:#} ")?;
    if objects == 1 {
        return tell_denial(text, (run, denial), numbers.chars().count() + 3, layout);
    }
    let record = &denial.record;
    let (comm, pattern) = (visible(&record.comm), visible(&group.pattern));
    let missing = denied(record);
    let told = format!(
        "{STRONG}{comm}{STRONG:#} may not {BAD}{missing}{BAD:#} {STRONG}{pattern}{STRONG:#}: {objects} objects, {} times",
        group.times(),
    );
    let indent = numbers.chars().count() + 3;
    writeln!(text, "{}", look::fill(told.split(' '), indent, layout.width))?;
    let named = group.members.iter().take(MOST_NAMED);
    let objects: Vec<String> = named.clone().map(|(_, it)| visible(&it.record.object)).collect();
    row(text, layout, "such as", &objects.join(" "))?;
    powers(group).iter().try_for_each(|gives| row(text, layout, "gives", gives))?;
    row(text, layout, "program", &record.program)?;
    row(text, layout, "subject", &record.scontext)?;
    row(text, layout, "object", &object_of(record))?;
    row(text, layout, "why", &record.reason)?;
    record.rules.iter().try_for_each(|rule| row(text, layout, "rule", rule))?;
    denial.profile_rules.iter().try_for_each(|rule| row(text, layout, "profile", rule))?;
    if let Some(guarded) = guarded(denial, &run.scope) {
        row(text, layout, "guard", &guarded.why())?;
        let freed = named.filter_map(|(_, it)| run.lines(it)).collect::<Vec<_>>();
        return row(text, layout, "in a profile", &freed.join(", and "));
    }
    if record.natively {
        return row(text, layout, "natively", NATIVELY);
    }
    let left: Option<Vec<_>> = group.members.iter().map(|(_, it)| run.left(it)).collect();
    if let Some(why) = left.and_then(|left| left.into_iter().next()) {
        return row(text, layout, "in a profile", &why);
    }
    if !group.members.iter().any(|(_, it)| can_be_given(run.run, it)) {
        return Ok(());
    }
    let which = match group.numbers() {
        numbers if numbers.len() <= 40 => numbers,
        _ => "--all".to_owned(),
    };
    let allow = match run.run.goes_on {
        true => format!("dewar allow {} {which} --once", run.run.called()),
        false => format!("dewar allow {which} --dry-run"),
    };
    row(text, layout, "would allow", &allow)
}

/// The label of an object, and in the policy's names what was denied on it.
fn object_of(record: &Record) -> String {
    format!("{} ({})", record.tcontext, exact(&record.tclass, &record.missing))
}

/// A line of what is told, with the lines that it takes at this width.
fn row(text: &mut String, layout: Layout, name: &str, value: &str) -> std::fmt::Result {
    const INDENT: usize = 15;
    if value.is_empty() {
        return Ok(());
    }
    let value = visible(value);
    let value = match layout.width {
        usize::MAX => value,
        width => look::fill(value.split(' '), INDENT, width),
    };
    writeln!(text, "  {FAINT}{name:13}{FAINT:#}{value}")
}

/// One denial; its number takes `indent` columns of the first line.
fn tell_denial(
    text: &mut String,
    (told, denial): (&Told<'_>, &Denial),
    indent: usize,
    layout: Layout,
) -> std::fmt::Result {
    let record = &denial.record;
    let times = if record.count > 1 { format!(", {} times", record.count) } else { String::new() };
    let missing = denied(record);
    let (comm, object) = (visible(&record.comm), visible(&record.object));
    let head = format!(
        "{STRONG}{comm}{STRONG:#} may not {BAD}{missing}{BAD:#} {STRONG}{object}{STRONG:#}{times}"
    );
    writeln!(text, "{}", look::fill(head.split(' '), indent, layout.width))?;
    let mut line = |name: &str, value: &str| row(text, layout, name, value);
    line("program", &record.program)?;
    line("call", &record.call)?;
    line("subject", &record.scontext)?;
    if !record.refused_by.is_empty() {
        line("refused by", &record.refused_by)?;
        line("why", &record.reason)?;
        return line("instead", &record.instead);
    }
    line("object", &object_of(record))?;
    line("why", &record.reason)?;
    record.rules.iter().try_for_each(|rule| line("rule", rule))?;
    denial.profile_rules.iter().try_for_each(|rule| line("profile", rule))?;
    line("gives", profile::power(&record.object).unwrap_or_default())?;
    if denial.profile_rules.iter().any(|rule| rule.starts_with("revoked by ")) {
        // No line of a profile would help: amendments are stronger.
        return Ok(());
    }
    if let Some(guarded) = guarded(denial, &told.scope) {
        line("guard", &guarded.why())?;
        let lines = told.lines(denial).map(str::to_owned).or_else(|| made_first(denial));
        line("in a profile", &lines.unwrap_or_default())?;
        let workspace = told.run.variables.as_ref().map_or(Path::new("/"), |it| &it.workspace);
        return line("or", &guarded.instead(workspace).unwrap_or_default());
    }
    if record.natively {
        return line("natively", NATIVELY);
    }
    if let Some(entry) = told.entry(denial) {
        return line("in a profile", entry);
    }
    line("would allow", record.would_allow.as_deref().unwrap_or_default())?;
    let hosts = proposal::named_hosts(&told.run.command);
    if let Some(why) = reasons::not_found(record, &hosts, &told.run.unfound) {
        return line("in a profile", &format!("no line helps: {why}"));
    }
    if let Some(why) = told.left(denial) {
        return line("in a profile", &why);
    }
    line("granted", &without_address(record, &told.run.unfound).unwrap_or_default())?;
    let lines = in_profile(denial, told.run.variables.as_ref()).unwrap_or_default();
    let lines = told.lines(denial).map_or(lines, str::to_owned);
    if let Some(hosts) = named_hosts(record, &told.run.command) {
        line("in a profile", &hosts)?;
        return line("or", &lines);
    }
    let made_first = made_first(denial).unwrap_or_default();
    if lines.is_empty() {
        return line("in a profile", &made_first);
    }
    line("in a profile", &lines)?;
    line("or", &made_first)
}
