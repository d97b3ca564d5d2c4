//! `dewar explain`: what the last run was denied, why, and what would allow it.

mod remedy;
#[cfg(test)]
mod tests;

use crate::{
    amend::literal,
    groups::{Group, groups},
    output,
    proposal::{Proposal, is_guarded, of_file},
    receipt,
    run::document::RunDocument,
    run::{Denial, Journal, RunRecord, guarded, lacking},
};
use clap::Args;
use cli::look::{self, BAD, FAINT, GOOD, STRONG, paint};
use monitor::visible;
use remedy::{entry, in_profile, made_first, powers};
use std::fmt::Write as _;

const EXAMPLES: &str = "\
Examples:
  dewar run -- make; dewar explain
  dewar explain ci                     a run by its name, or the beginning of its id
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
    /// The run: its id, the beginning of it, or its name [default: the last]
    run: Option<String>,

    /// Tell each denial for itself
    #[arg(long, conflicts_with_all = ["json", "toml"])]
    all: bool,

    /// Print the whole record of the run as JSON
    #[arg(long)]
    json: bool,

    /// Print the lines of a profile that would allow it, each once
    #[arg(long, conflicts_with = "json")]
    toml: bool,
}

/// Carries out `dewar explain`.
pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let record = Journal::find(args.run.as_deref())?;
    let text = match (args.json, args.toml) {
        (true, _) => json(&record)?,
        (_, true) => fragment(&record)?,
        _ => {
            let layout = Layout { all: args.all, width: look::columns().unwrap_or(usize::MAX) };
            return Ok(look::show(&tell(&record, layout)?)?);
        }
    };
    Ok(output::print(text.as_bytes())?)
}

/// The record, with the lines that would allow what was denied.
fn json(record: &RunRecord) -> anyhow::Result<String> {
    let mut document = RunDocument::of(record);
    // A profile that is gone by now takes nothing from the record.
    if let Ok(fitting) = of_file(record) {
        let denials: Vec<&Denial> = record.denials.iter().collect();
        if let Ok(proposal) = Proposal::of(&fitting, &denials, &[]) {
            document.would_allow = Some(proposal.lines.iter().map(learn::Line::alone).collect());
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
    for line in &proposal.lines {
        edit.add(line)?;
    }
    let mut text: String = edit.text();
    for (denial, why) in &proposal.left {
        let (comm, object) = (visible(&denial.record.comm), visible(&denial.record.object));
        writeln!(text, "# not here: {comm}: {} {object}", denial.record.missing.join(" "))?;
        writeln!(text, "#   {}", visible(why))?;
    }
    if record.denials.is_empty() {
        text.push_str("# no denial was recorded\n");
    }
    Ok(text)
}

/// What finds out what is absent: that is no denial.
const UNTOLD: &str = "if the command fails under Dewar alone, `dewar learn -- COMMAND` finds out what it needs; it \
                      runs the command with nearly everything allowed";

/// Groups that are told without `--all`.
const MOST_GROUPS: usize = 25;

/// Objects of a group that are named.
const MOST_NAMED: usize = 3;

/// How much is told, and how wide.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) all: bool,
    pub(crate) width: usize,
}

/// The record, for people.
pub(crate) fn tell(record: &RunRecord, layout: Layout) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    text.push_str(&heading(record, layout.width));
    if record.denials.is_empty() {
        writeln!(text, "no denial was recorded")?;
        if record.status != 0 {
            writeln!(text, "{}", look::fill(UNTOLD.split(' '), 0, layout.width))?;
        }
    }
    for line in lacking(record) {
        writeln!(text, "{}", look::fill(line.split(' '), 0, layout.width))?;
    }
    for remark in &record.remarks {
        writeln!(text, "{}", visible(remark))?;
    }
    tell_denials(&mut text, record, layout)?;
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
    if !record.unrecorded.is_empty() {
        writeln!(text, "\nwhat leaves no record where it is refused:")?;
    }
    for layer in &record.unrecorded {
        let layer = visible(layer);
        writeln!(text, "  {}", look::fill(layer.split(' '), 4, layout.width.saturating_sub(2)))?;
    }
    Ok(text)
}

/// What was run, under what, and how it ended: the first line of `explain` and of `report`.
pub(crate) fn heading(record: &RunRecord, width: usize) -> String {
    let (command, profile) = (visible(&record.command.join(" ")), visible(&record.profile));
    let status = record.status.to_string();
    let beside = "`` under : exit status ".len() + profile.chars().count() + status.len();
    let command = look::cut(&command, width.saturating_sub(beside).max(20));
    let status = paint(if record.status == 0 { GOOD } else { BAD }, &status);
    format!("`{STRONG}{command}{STRONG:#}` under {profile}: exit status {status}\n")
}

/// The denials in groups, or each for itself.
fn tell_denials(text: &mut String, record: &RunRecord, layout: Layout) -> std::fmt::Result {
    let alone = |(index, denial): (usize, _)| {
        let denial: &Denial = denial;
        Group { pattern: denial.record.object.clone(), members: vec![(index + 1, denial)] }
    };
    let groups = match layout.all {
        true => record.denials.iter().enumerate().map(alone).collect(),
        false => groups(&record.denials),
    };
    let most = if layout.all { usize::MAX } else { MOST_GROUPS };
    for group in groups.iter().take(most) {
        tell_group(text, (record, group), layout)?;
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
    (run, group): (&RunRecord, &Group<'_>),
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
    let missing = record.missing.join(" ");
    let told = format!(
        "{STRONG}{comm}{STRONG:#} may not {BAD}{missing}{BAD:#} {STRONG}{pattern}{STRONG:#}: {objects} objects, {} times",
        group.times(),
    );
    let indent = numbers.chars().count() + 3;
    writeln!(text, "{}", look::fill(told.split(' '), indent, layout.width))?;
    let named = group.members.iter().take(MOST_NAMED);
    let named: Vec<String> = named.map(|(_, it)| visible(&it.record.object)).collect();
    row(text, layout, "such as", &named.join(" "))?;
    powers(group).iter().try_for_each(|gives| row(text, layout, "gives", gives))?;
    row(text, layout, "program", &record.program)?;
    row(text, layout, "subject", &record.scontext)?;
    row(text, layout, "object", &format!("{} ({})", record.tcontext, record.tclass))?;
    row(text, layout, "why", &record.reason)?;
    record.rules.iter().try_for_each(|rule| row(text, layout, "rule", rule))?;
    denial.profile_rules.iter().try_for_each(|rule| row(text, layout, "profile", rule))?;
    if is_guarded(record) {
        let (why, directory) = guarded(&record.object);
        row(text, layout, "guard", &why)?;
        let unguarded = entry("files.unguarded", &literal(&directory));
        return row(text, layout, "in a profile", &unguarded);
    }
    let allow = match group.numbers() {
        numbers if numbers.len() <= 40 => format!("dewar allow {numbers} --dry-run"),
        _ => "dewar allow --all --dry-run".to_owned(),
    };
    row(text, layout, "would allow", &allow)
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
    (run, denial): (&RunRecord, &Denial),
    indent: usize,
    layout: Layout,
) -> std::fmt::Result {
    let record = &denial.record;
    let times = if record.count > 1 { format!(", {} times", record.count) } else { String::new() };
    let missing = record.missing.join(" ");
    let (comm, object) = (visible(&record.comm), visible(&record.object));
    let told = format!(
        "{STRONG}{comm}{STRONG:#} may not {BAD}{missing}{BAD:#} {STRONG}{object}{STRONG:#}{times}"
    );
    writeln!(text, "{}", look::fill(told.split(' '), indent, layout.width))?;
    let mut line = |name: &str, value: &str| row(text, layout, name, value);
    line("program", &record.program)?;
    line("call", &record.call)?;
    line("subject", &record.scontext)?;
    if !record.refused_by.is_empty() {
        line("refused by", &record.refused_by)?;
        line("why", &record.reason)?;
        return line("instead", &record.instead);
    }
    line("object", &format!("{} ({})", record.tcontext, record.tclass))?;
    line("why", &record.reason)?;
    record.rules.iter().try_for_each(|rule| line("rule", rule))?;
    denial.profile_rules.iter().try_for_each(|rule| line("profile", rule))?;
    line("gives", profile::power(&record.object).unwrap_or_default())?;
    if denial.profile_rules.iter().any(|rule| rule.starts_with("revoked by ")) {
        // No line of a profile would help: amendments are stronger.
        return Ok(());
    }
    if is_guarded(record) {
        let (why, directory) = guarded(&record.object);
        line("guard", &why)?;
        return line("in a profile", &entry("files.unguarded", &literal(&directory)));
    }
    line("would allow", record.would_allow.as_deref().unwrap_or_default())?;
    line("in a profile", &in_profile(denial, run.variables.as_ref()).unwrap_or_default())?;
    line("or", &made_first(denial).unwrap_or_default())
}
