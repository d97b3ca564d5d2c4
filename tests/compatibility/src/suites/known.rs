//! What may differ, and the list of results that is kept. `docs/compatibility.md` tells both.

use crate::{
    list::{KNOWN, Known},
    stage::Way,
};
use anyhow::Context as _;
use std::path::{Path, PathBuf};

impl Known {
    fn is(&self, suite: &str, case: &str, way: Way) -> bool {
        let named = match self.case.strip_suffix('*') {
            Some(beginning) => case.starts_with(beginning),
            None => case == self.case,
        };
        self.suite == suite && named && (self.in_open || way == Way::Workspace)
    }
}

/// Why a case may differ, if it may.
pub(crate) fn reason(suite: &str, case: &str, way: Way) -> Option<&'static str> {
    KNOWN.iter().find(|known| known.is(suite, case, way)).map(|known| known.reason)
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
