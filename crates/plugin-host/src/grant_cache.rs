//! The grants that one subject has on one plugin. They are kept with the subject: the answer
//! itself, not only a hint to it.

use crate::{access_check::AccessCheck, plugin::Plugin};
use avc::Hint;
use flask::{AccessVector, Class, Question, Seqno, Sid};
use std::sync::Arc;

/// Permissions of class `plugin` that were granted under one policy state. They hold until a newer
/// one is heard of. Everything else is asked through the cache: so every denial is fresh, and on
/// record.
pub(crate) struct GrantCache {
    access: Arc<AccessCheck>,
    question: Question,
    granted: AccessVector,
    /// The policy state that granted them.
    seqno: Seqno,
    /// How often they were used, and not yet counted in the cache's statistics.
    used: u64,
    hint: Hint,
}

impl GrantCache {
    /// What `ssid` may do to `plugin`: nothing is known yet.
    pub(crate) fn new(ssid: Sid, plugin: &Plugin) -> Self {
        let question = Question { ssid, tsid: plugin.sid, tclass: Class::Plugin };
        let access = Arc::clone(&plugin.access);
        let (granted, hint) = (AccessVector::NONE, Hint::default());
        Self { access, question, granted, seqno: Seqno(0), used: 0, hint }
    }

    /// Whether `requested` is granted; a denial is recorded under the name of `plugin`.
    #[inline]
    pub(crate) fn allows(&mut self, plugin: &Plugin, requested: AccessVector) -> bool {
        // As in the cache: an answer is good while no newer policy state than its own was heard of.
        if self.granted.contains(requested) && self.seqno >= self.access.avc.current() {
            self.used += 1;
            return true;
        }
        self.ask(plugin, requested)
    }

    #[cold]
    #[inline(never)]
    fn ask(&mut self, plugin: &Plugin, requested: AccessVector) -> bool {
        let asked = self.access.ask(&plugin.name, self.question, requested, &self.hint, || None);
        // What passes only because the domain is permissive is asked, and recorded, every time.
        if let Some(verdict) = asked.verdict().filter(|it| it.missing.is_empty()) {
            let same = verdict.seqno == self.seqno;
            let before = if same { self.granted } else { AccessVector::NONE };
            (self.granted, self.seqno) = (before | requested, verdict.seqno);
        }
        asked.granted()
    }

    /// Counts the uses of what is kept as answers found at a hint.
    pub(crate) fn settle(&mut self) {
        self.access.avc.count_kept(std::mem::take(&mut self.used));
    }
}
