//! What `dewar allow` says of a change.

use super::{AllowArgs, Wanted};
use crate::{
    entries::made_first,
    fitting::Fitting,
    guarded::frees,
    misplaced,
    proposal::{Proposal, beside},
    run::Denial,
    shell, trust,
    words::denied,
};
use cli::look;
use learn::{Line, widening};
use monitor::visible;
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    path::{Path, PathBuf},
};

/// What the change is, and what else it grants.
pub(super) fn tell(
    fitting: &Fitting,
    proposal: &Proposal<'_>,
    denials: &[&Denial],
) -> anyhow::Result<String> {
    let mut text = String::new();
    let (old, all) = (fitting.judge(&[])?, fitting.judge(&proposal.lines)?);
    let place = |line: &Line| fitting.scope.path(&line.value);
    let is_made_in = |line: &Line, directory: &Path| {
        let is_in = place(line).is_some_and(|it| it.parent() == Some(directory));
        is_in && line.is_shut_in(&old, &fitting.scope)
    };
    for line in &proposal.lines {
        writeln!(text, "{}", visible(&line.alone()))?;
        if let Some(gives) = line.gives(&fitting.scope) {
            writeln!(text, "  GIVES whoever connects {gives}")?;
        }
        if let Some(said) = misplaced::told(line) {
            writeln!(text, "  {said}")?;
        }
        let new = fitting.judge(std::slice::from_ref(line))?;
        if let Some(said) = frees(line, &new, &fitting.scope) {
            writeln!(text, "  {said}")?;
        }
        let meant: Vec<PathBuf> =
            denials.iter().map(|denial| PathBuf::from(&denial.record.object)).collect();
        let also = widening(std::slice::from_ref(line), (&old, &new), &fitting.scope, &meant);
        if let Some(beside) = beside(&also) {
            writeln!(text, "  {beside}")?;
        }
        if let Some(said) = made_first(line, &all, &fitting.scope) {
            writeln!(text, "  {said}")?;
        }
        let directory = place(line).filter(|_| line.key == "files.list");
        if directory.is_some_and(|it| proposal.lines.iter().any(|line| is_made_in(line, &it))) {
            writeln!(
                text,
                "  the run sees all names in it, so that it can make what it is granted there"
            )?;
        }
    }
    if fitting.loses_loopback(&proposal.lines)? {
        writeln!(text, "network.loopback = \"own\"")?;
        writeln!(
            text,
            "  the run's own loopback ends with that; this lets it have ports of its own on the machine's"
        )?;
    }
    for (denial, why) in &proposal.left {
        let record = &denial.record;
        let (comm, object) = (visible(&record.comm), visible(&record.object));
        writeln!(text, "not allowed: {comm} may not {} {object}", denied(record))?;
        writeln!(text, "  {}", visible(why))?;
    }
    Ok(text)
}

/// The command that allows what has to be named; empty, if nothing has.
pub(super) fn by_name(
    args: &AllowArgs,
    wanted: &Wanted,
    is_file: bool,
    names: &BTreeSet<PathBuf>,
) -> String {
    let names = names.iter().map(|name| name.to_string_lossy().into_owned());
    // What a terminal shows otherwise, nobody could copy.
    let names: Vec<String> = names.filter(|name| visible(name) == *name).collect();
    if names.is_empty() {
        return String::new();
    }
    let mut words = vec!["dewar".to_owned(), "allow".to_owned()];
    words.extend(wanted.run.clone());
    words.extend(names);
    match &args.write {
        _ if args.once => words.push("--once".into()),
        Some(file) => words.extend(["--write".into(), file.display().to_string()]),
        None if !is_file => words.extend(["--write".into(), trust::NAME.into()]),
        None => {}
    }
    format!("by its full name it is allowed:\n  {}\n", visible(&shell::command(&words)))
}

/// The text as people see it. Lines of a profile and commands are never broken: they are there to
/// be copied.
pub(super) fn shown(text: &str, columns: Option<usize>) -> String {
    let bad = |text: String, words: &str| text.replacen(words, &look::paint(look::BAD, words), 1);
    let line = |line: &str| match line.split_once(" = [") {
        Some((key, _)) if !key.contains(' ') => look::paint(look::STRONG, line) + "\n",
        _ if line.starts_with("  dewar ") => line.to_owned() + "\n",
        _ => {
            let line = columns.map_or_else(|| line.to_owned(), |it| look::folded(line, it));
            let is_left = line.starts_with("not allowed:");
            let line = if is_left { bad(line, "not allowed:") } else { line };
            let line = bad(line, "UNGUARDED:");
            bad(line, "SECRET by its looks") + "\n"
        }
    };
    text.lines().map(line).collect()
}
