//! What may differ (`known.tsv`), and the list of results that is kept (`results.tsv`).
//! `docs/compatibility.md` tells both.

use crate::stage::Way;
use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// Cases that pass natively, and not under Dewar. A line has the suite, the name of a case (or the
/// beginning of names before a `*`), whether it is so under `open` or under `workspace` alone, and
/// why.
const KNOWN: &str = include_str!("known.tsv");

/// Why a case may differ, if it may.
pub(crate) fn reason(suite: &str, case: &str, way: Way) -> Option<&'static str> {
    let reason = |line: &'static str| {
        let [of, named, under, reason] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("known.tsv: {line}");
        };
        let is_named = match named.strip_suffix('*') {
            Some(beginning) => case.starts_with(beginning),
            None => case == named,
        };
        let is_it = of == suite && is_named && (under == "open" || way == Way::Workspace);
        is_it.then_some(reason)
    };
    KNOWN.lines().find_map(reason)
}

/// How many cases passed natively when the results were kept, if by now less than half of them do:
/// something that the suite needs is missing.
pub(crate) fn shrunk(suite: &str, who: &str, passed: usize) -> Option<usize> {
    let kept = std::fs::read_to_string(results()).ok()?;
    let mut lines = kept.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let line = lines.find(|cells| cells.starts_with(&[suite, who]))?;
    line.get(2)?.parse().ok().filter(|before| passed * 2 < *before)
}

/// Keeps how many cases passed: natively, and in each way under Dewar.
pub(crate) fn keep(suite: &str, who: &str, counts: &[usize]) -> anyhow::Result<()> {
    let path = results();
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let key = format!("{suite}\t{who}\t");
    let mut lines: Vec<String> =
        before.lines().filter(|line| !line.starts_with(&key)).map(str::to_owned).collect();
    let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
    lines.push(key + &counts.join("\t"));
    lines.sort_unstable();
    std::fs::write(&path, lines.join("\n") + "\n").context("cannot keep the results")
}

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suites/results.tsv")
}
