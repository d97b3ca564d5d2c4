//! What Dewar keeps of a run.

use serde::Deserialize;
use std::path::Path;

/// The record of a run, as far as tests look at it.
#[derive(Debug, Deserialize)]
pub(crate) struct Record {
    pub(crate) status: i32,
    pub(crate) denials: Vec<Denial>,
    pub(crate) decisions: Vec<Decisions>,
}

/// Decisions of one object manager.
#[derive(Debug, Deserialize)]
pub(crate) struct Decisions {
    pub(crate) queries: u64,
}

/// A denial in it.
#[derive(Debug, Deserialize)]
pub(crate) struct Denial {
    pub(crate) call: String,
    pub(crate) object: String,
    pub(crate) tclass: String,
    pub(crate) missing: Vec<String>,
    pub(crate) reason: String,
    /// How often.
    pub(crate) count: u64,
    /// Which part of Dewar refuses it whatever policy says.
    #[serde(default)]
    pub(crate) refused_by: String,
    /// Programs probe for it, and do without.
    #[serde(default)]
    pub(crate) probed: bool,
}

impl Denial {
    /// The denial in a few words: call, class, missing permissions, object.
    pub(crate) fn text(&self) -> String {
        format!("{}: {} {{ {} }} {}", self.call, self.tclass, self.missing.join(" "), self.object)
    }
}

impl Record {
    /// The last record in `state`, which is `XDG_STATE_HOME` of the run.
    pub(crate) fn last(state: &Path) -> Self {
        let runs = state.join("dewar/runs");
        let entries = std::fs::read_dir(&runs).expect("a directory of records");
        let last = entries.map(|entry| entry.expect("an entry").path()).max().expect("a record");
        let text = std::fs::read(&last).expect("read the record");
        serde_json::from_slice(&text).expect("a complete record")
    }

    /// The denials that concern `object` (the end of its name, or all of it).
    pub(crate) fn denials_of(&self, object: &str) -> Vec<&Denial> {
        self.denials.iter().filter(|denial| denial.object.ends_with(object)).collect()
    }
}
