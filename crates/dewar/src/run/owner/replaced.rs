//! What a run goes on under that its profile did not say, and no amendment.

use crate::{control::PolicyChange, run::serving::Decider};

/// Whether the profile was exchanged, or booleans of the policy were set.
pub(super) struct Replaced {
    /// The state of the security server that the last change of this run has led to; `None` if
    /// nobody knows.
    seqno: Option<u32>,
    by: Option<String>,
}

impl Replaced {
    /// Nothing so far.
    pub(super) fn nothing(decider: &Decider) -> Self {
        Self { seqno: decider.seqno(), by: None }
    }

    /// Another profile is in force, or was meant to be.
    pub(super) fn by_profile(&mut self, change: &PolicyChange) {
        let when = humantime::format_rfc3339_seconds(change.when);
        self.by = Some(format!("replaced by `{}` at {when}", change.what));
    }

    /// A change of this run has led to the state `seqno`. Others between are not of this run.
    pub(super) fn follow(&mut self, seqno: u32) {
        if self.seqno.is_none_or(|before| before.checked_add(1) != Some(seqno)) {
            self.by.get_or_insert_with(by_booleans);
        }
        self.seqno = Some(seqno);
    }

    /// Whether a change of this run has led to the state `seqno`, or one after it.
    pub(super) fn has_come_to(&self, seqno: u32) -> bool {
        self.seqno.is_some_and(|own| seqno <= own)
    }

    /// The run is under its former policy again, in the state `seqno`.
    pub(super) fn go_back(&mut self, seqno: u32) {
        self.seqno = Some(seqno);
    }

    /// By what it was, if it was.
    pub(super) fn by(&self, decider: &Decider) -> Option<String> {
        let is_known = self.seqno.is_some() && self.seqno == decider.seqno();
        self.by.clone().or_else(|| (!is_known).then(by_booleans))
    }
}

fn by_booleans() -> String {
    "changed by `dewar policy set`".into()
}
