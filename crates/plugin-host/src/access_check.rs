//! Checks access for plugins: cache, security server, record.

use crate::denial::{Denial, Journal};
use avc::{Avc, Hint, Verdict};
use flask::{AccessVector, Question};

/// The AVC of one host, and the journal of what it denied.
pub(crate) struct AccessCheck {
    pub(crate) avc: Avc,
    pub(crate) journal: Journal,
}

impl AccessCheck {
    /// Whether `question.ssid` may use `requested`. What is denied is recorded under `plugin`, with
    /// what `object` calls the thing; no answer is a denial.
    pub(crate) fn allows(
        &self,
        plugin: &str,
        question: Question,
        requested: AccessVector,
        hint: &Hint,
        object: impl FnOnce() -> Option<String>,
    ) -> bool {
        self.ask(plugin, question, requested, hint, object).is_some_and(Verdict::granted)
    }

    /// The same, as the cache has it; `None` when there is no answer.
    pub(crate) fn ask(
        &self,
        plugin: &str,
        question: Question,
        requested: AccessVector,
        hint: &Hint,
        object: impl FnOnce() -> Option<String>,
    ) -> Option<Verdict> {
        let verdict = self.avc.has_perm(question, requested, hint).ok();
        let (granted, missing, recorded) = match &verdict {
            Some(verdict) if verdict.missing.is_empty() => return Some(*verdict),
            Some(verdict) => (verdict.granted(), verdict.missing, !verdict.audit.is_empty()),
            None => (false, requested, true),
        };
        if recorded {
            let (plugin, object) = (plugin.to_owned(), object());
            self.journal.record(Denial { plugin, question, missing, object, permissive: granted });
        }
        verdict
    }
}
