//! What came of all cases behind all walls.

use selftest::{
    case::{Case, Severity},
    verdict::Verdict,
    wall::Wall,
};
use serde::Serialize;

/// All of it, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Tried {
    pub(crate) profile: String,
    pub(crate) walls: Vec<String>,
    /// What the profile gives outside, by services that act for whoever connects.
    pub(crate) gives: Vec<String>,
    pub(crate) cases: Vec<Row>,
}

/// One case.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) severity: Severity,
    pub(crate) claim: &'static str,
    pub(crate) source: &'static str,
    /// As the walls are named: none first, then Dewar.
    pub(crate) verdicts: Vec<Verdict>,
}

/// Where Dewar stands among the walls.
const DEWAR: usize = 1;

impl Tried {
    pub(crate) fn new(profile: &str, walls: &[Wall]) -> Self {
        let walls = walls.iter().map(Wall::name).collect();
        Self { profile: profile.to_owned(), walls, gives: Vec::new(), cases: Vec::new() }
    }

    pub(crate) fn add(&mut self, case: &Case, verdicts: Vec<Verdict>) {
        let &Case { name, severity, claim, source, .. } = case;
        self.cases.push(Row { name, severity, claim, source, verdicts });
    }

    /// Whether Dewar let something through.
    pub(crate) fn got_through(&self) -> bool {
        self.cases.iter().any(|row| row.dewar().is_bad())
    }

    /// Why nothing was tried under Dewar, if so.
    pub(crate) fn nothing_tried(&self) -> Option<&str> {
        let mut whys = self.cases.iter().map(|row| match row.dewar() {
            Verdict::NotApplicable { why } => Some(why.as_str()),
            _ => None,
        });
        let first = whys.next()??;
        whys.all(|why| why.is_some()).then_some(first)
    }

    /// What got through, the worst first.
    pub(crate) fn ranked(&self) -> Vec<&Row> {
        let bad = |row: &&Row| row.dewar().happened();
        let mut rows: Vec<&Row> = self.cases.iter().filter(bad).collect();
        rows.sort_by_key(|row| (!row.dewar().is_bad(), std::cmp::Reverse(row.severity)));
        rows
    }
}

impl Row {
    pub(crate) fn off(&self) -> &Verdict {
        &self.verdicts[0]
    }

    pub(crate) fn dewar(&self) -> &Verdict {
        &self.verdicts[DEWAR]
    }

    /// What is to be said of a wall: what did not happen without one proves nothing.
    pub(crate) fn behind(&self, wall: usize) -> &Verdict {
        let verdict = &self.verdicts[wall];
        let proves = self.off().happened() || verdict.happened();
        match verdict {
            Verdict::Stopped { .. } if !proves => self.off(),
            _ => verdict,
        }
    }
}
