//! Asking whether a plugin may.

use crate::denial::{Denial, Journal};
use avc::{Avc, Hint};
use flask::{AccessVector, Class, Question, Sid};

/// What every check of a host goes through.
pub(crate) struct Gate {
    pub(crate) avc: Avc,
    pub(crate) journal: Journal,
}

impl Gate {
    /// Whether `ssid` may use `requested` on plugin `tsid`. What is denied is recorded under `plugin`; no answer
    /// is a denial.
    pub(crate) fn allows(
        &self,
        plugin: &str,
        ssid: Sid,
        tsid: Sid,
        requested: AccessVector,
        hint: &Hint,
    ) -> bool {
        let question = Question { ssid, tsid, tclass: Class::Plugin };
        let (granted, missing, recorded) = match self.avc.has_perm(question, requested, hint) {
            Ok(verdict) => (verdict.granted(), verdict.missing, !verdict.audit.is_empty()),
            Err(flask::Unreachable) => (false, requested, true),
        };
        if recorded && !missing.is_empty() {
            let plugin = plugin.to_owned();
            self.journal.record(Denial { plugin, question, missing, permissive: granted });
        }
        granted
    }
}
