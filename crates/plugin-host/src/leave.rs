//! What a subject may do to a plugin, kept with who asks: the answer itself, where a hint would be its place.

use crate::check::Gate;
use avc::Hint;
use flask::{AccessVector, Class, Question, Seqno, Sid};

/// Permissions of class `plugin` that were granted under one policy state, and hold until a newer one is heard of. What
/// is not among them is asked through the cache, so every denial is a fresh one, and on record.
pub(crate) struct Leave {
    question: Question,
    granted: AccessVector,
    /// The policy state that granted them.
    seqno: Seqno,
    /// How often they were used, and not yet counted in the cache's statistics.
    used: u64,
    hint: Hint,
}

impl Leave {
    /// What `ssid` may do to `tsid`: nothing is known yet.
    pub(crate) fn new(ssid: Sid, tsid: Sid) -> Self {
        let question = Question { ssid, tsid, tclass: Class::Plugin };
        let (granted, hint) = (AccessVector::NONE, Hint::default());
        Self { question, granted, seqno: Seqno(0), used: 0, hint }
    }

    /// Whether `requested` is granted; a denial is recorded under `plugin`.
    #[inline]
    pub(crate) fn allows(&mut self, gate: &Gate, plugin: &str, requested: AccessVector) -> bool {
        // As in the cache: an answer is good while no newer policy state than its own was heard of.
        if self.granted.contains(requested) && self.seqno >= gate.avc.current() {
            self.used += 1;
            return true;
        }
        self.ask(gate, plugin, requested)
    }

    #[cold]
    #[inline(never)]
    fn ask(&mut self, gate: &Gate, plugin: &str, requested: AccessVector) -> bool {
        let Some(verdict) = gate.ask(plugin, self.question, requested, &self.hint, || None) else {
            return false;
        };
        // What passes only because the domain is permissive is asked, and recorded, every time.
        if verdict.missing.is_empty() {
            let same = verdict.seqno == self.seqno;
            let before = if same { self.granted } else { AccessVector::NONE };
            (self.granted, self.seqno) = (before | requested, verdict.seqno);
        }
        verdict.granted()
    }

    /// Counts the uses of what is kept as answers found at a hint.
    pub(crate) fn settle(&mut self, gate: &Gate) {
        gate.avc.count_kept(std::mem::take(&mut self.used));
    }
}
