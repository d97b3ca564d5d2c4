//! What `dewar learn` says at its end.

use super::{LearnArgs, Learned};
use crate::{entries::made_first, proposal::beside, shell::quoted, words::words};
use learn::{Access, Line, Settled, widening};
use monitor::visible;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    slice::from_ref,
};

/// What the profile does not grant, although it was asked for.
pub(super) fn left(settled: &Settled, accesses: &BTreeMap<Access, u64>) -> Vec<String> {
    let denied = accesses.keys().filter(|access| !access.granted);
    let mut seen: Vec<String> = Vec::new();
    // A directory that was made once is there now.
    let is_made = |access: &&Access| access.granted && access.path().is_some_and(Path::is_dir);
    for access in denied.chain(settled.left.iter().filter(|access| !is_made(access))) {
        let line = format!(
            "{} may not {} {}{}",
            visible(access.who()),
            words(&access.requested),
            visible(&access.object),
            profile::power(&access.object)
                .map_or_else(String::new, |gives| format!(", which gives {gives}"))
        );
        if !seen.contains(&line) {
            seen.push(line);
        }
    }
    const MOST: usize = 8;
    let shown = seen.iter().take(MOST).map(|line| format!("dewar: stays denied: {line}"));
    let more = seen.len().saturating_sub(MOST);
    let more = (more > 0).then(|| format!("dewar: and {more} more, which `dewar explain` tells"));
    shown.chain(more).collect()
}

/// What lines grant beyond what was used, of the files that are there already.
pub(super) fn beyond(
    learned: &Learned,
    accesses: &BTreeMap<Access, u64>,
) -> anyhow::Result<Vec<String>> {
    const MOST: usize = 8;
    let Learned { fitting, lines, .. } = learned;
    let used: Vec<PathBuf> =
        accesses.keys().filter_map(|access| Some(access.path()?.to_owned())).collect();
    let old = fitting.judge(&[])?;
    let mut told = Vec::new();
    for line in lines.iter().filter(|line| line.key.starts_with("files.")) {
        let new = fitting.judge(from_ref(line))?;
        let also = widening(from_ref(line), (&old, &new), &fitting.scope, &used);
        if let Some(beside) = beside(&also) {
            told.push(format!("dewar: {}: {beside}", visible(&line.alone())));
        }
    }
    let more = told.len().saturating_sub(MOST);
    told.truncate(MOST);
    told.extend((more > 0).then(|| format!("dewar: and {more} more lines grant such files")));
    Ok(told)
}

/// What was learned, and what is next. `left` says whether something stays denied.
pub(super) fn done(
    lines: &[Line],
    args: &LearnArgs,
    command: &str,
    (status, left): (i32, bool),
    is_written: bool,
) -> Vec<String> {
    let file = args.output.display().to_string();
    let file = visible(&if file.contains('/') { file } else { format!("./{file}") });
    let (own, by) = (quoted(&file), quoted(&visible(args.base())));
    let base = visible(args.base());
    let none = match left {
        true => format!("no line beyond `{base}` was learned"),
        false => format!("`{base}` grants all that it used"),
    };
    let added = match lines.len() {
        0 => format!("{none}; wrote"),
        1 => "learned 1 line, in".to_owned(),
        many => format!("learned {many} lines, in"),
    };
    let failed = format!(
        "dewar: the command failed here, too (exit status {status}): what it did not come to was not learned"
    );
    let mut told: Vec<String> = (status != 0).then_some(failed).into_iter().collect();
    if args.merge && lines.is_empty() && !left {
        told.push(format!("dewar: {file} grants all that it used, and stays as it is"));
        told.push(format!("  dewar run -p {own} -- {}", visible(command)));
        return told;
    }
    if !is_written {
        told.push(format!("dewar: {none}; no file was written"));
        told.push(format!("  dewar run -p {by} -- {}", visible(command)));
        return told;
    }
    told.push(format!("dewar: {added} {file}; read it, then"));
    told.push(format!("  dewar run -p {own} -- {}", visible(command)));
    told
}

/// Lines for what was made and is gone, in directories that the next run does not see.
pub(super) fn unmade(learned: &Learned) -> anyhow::Result<Vec<String>> {
    let Learned { fitting, lines, .. } = learned;
    let judge = fitting.judge(lines)?;
    let told = lines.iter().filter_map(|line| {
        let why = made_first(line, &judge, &fitting.scope)?;
        Some(format!("dewar: {}: {why}", visible(&line.alone())))
    });
    Ok(told.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cli::look;

    #[test]
    fn what_was_learned_looks_as_reviewed() {
        let denied = |comm: &str, object: &str| Access {
            comm: comm.into(),
            program: format!("/usr/bin/{comm}"),
            object: object.into(),
            tclass: "file".into(),
            requested: vec!["read".into(), "open".into()],
            ..Access::default()
        };
        let mut accesses: BTreeMap<Access, u64> = (0..9)
            .map(|n| (denied("node", &format!("/home/me/.config/tokens/service-{n}.json")), 1))
            .collect();
        let long = "/home/me/projects/a-name-that-is-long/and-goes-on/.git/hooks/post-checkout";
        accesses.insert(denied("git", long), 2);
        let line = |value: &str| Line {
            domain: None,
            key: "files.read".into(),
            value: value.into(),
            comment: "node: once".into(),
        };
        let settled = Settled { lines: vec![line("/srv/a"), line("/srv/b")], left: Vec::new() };
        let command = vec!["npm".into(), "ci".into()];
        let args = LearnArgs::for_run(None, None, command);
        let mut told = left(&settled, &accesses);
        told.extend(done(&settled.lines, &args, "npm ci", (1, true), true));
        told.extend(done(&[], &args, "npm ci", (0, true), true));
        told.extend(done(&[], &args, "npm ci", (0, false), false));
        crate::screens::screen("learn", |width| {
            told.iter().map(|line| look::folded(line, width) + "\n").collect()
        });
    }
}
