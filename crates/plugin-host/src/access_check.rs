//! Checks access for plugins: cache, security server, record.

use crate::denial::{Denial, Journal};
use avc::{AccessOutcome, Avc, Hint};
use flask::{AccessVector, Question};

/// The AVC of one host, and the journal of what it denied.
pub(crate) struct AccessCheck {
    pub(crate) avc: Avc,
    pub(crate) journal: Journal,
}

impl AccessCheck {
    /// Whether `question.ssid` may use `requested`. What is denied is recorded under `plugin`, with
    /// what `object` calls the thing.
    pub(crate) fn allows(
        &self,
        plugin: &str,
        question: Question,
        requested: AccessVector,
        hint: &Hint,
        object: impl FnOnce() -> Option<String>,
    ) -> bool {
        self.ask(plugin, question, requested, hint, object).granted()
    }

    /// The same, as the cache has it.
    pub(crate) fn ask(
        &self,
        plugin: &str,
        question: Question,
        requested: AccessVector,
        hint: &Hint,
        object: impl FnOnce() -> Option<String>,
    ) -> AccessOutcome {
        let asked = self.avc.ask(question, requested, hint);
        let missing = asked.missing();
        if !missing.is_empty() && asked.is_recorded() {
            let (plugin, object, permissive) = (plugin.to_owned(), object(), asked.granted());
            self.journal.record(Denial { plugin, question, missing, object, permissive });
        }
        asked
    }
}
