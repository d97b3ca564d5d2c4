//! An object manager's way to a decision: hint, cache, security server; and the record of what was decided.

use crate::{audit::Access, gate::Asker, lacking};
use avc::{Avc, Hint, Stats};
use flask::{AccessVector, Class, Question, SecurityServer, Sid};
use rustix::io::Errno;
use std::sync::Arc;

/// One object manager: its cache, and whether it decides at all.
pub(crate) struct Manager {
    avc: Avc,
    /// A manager that passes everything is a row of the measurements.
    decides: bool,
}

/// What is asked for.
pub(crate) struct Request<'a> {
    pub(crate) tsid: Sid,
    pub(crate) tclass: Class,
    pub(crate) requested: AccessVector,
    pub(crate) hint: &'a Hint,
    /// Names the object, for people. Called only when there is something to record.
    pub(crate) object: &'a dyn Fn() -> String,
}

/// The policy does not grant it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denied;

/// Entries of a cache: several times as many as a policy has pairs of a domain and a label in use, in 64 KiB.
const ENTRIES: usize = 1024;

impl Manager {
    pub(crate) fn new(server: Arc<dyn SecurityServer>, decides: bool) -> Self {
        Self { avc: Avc::with_capacity(server, ENTRIES), decides }
    }

    /// What was answered before `seqno` holds no longer.
    pub(crate) fn reset(&self, seqno: flask::Seqno) {
        self.avc.reset(seqno);
    }

    pub(crate) fn stats(&self) -> Stats {
        self.avc.stats()
    }

    /// Asks whether `asker` may; records what policy wants recorded. No answer is a denial.
    pub(crate) fn ask(&self, asker: Asker<'_>, request: &Request<'_>) -> Result<(), Denied> {
        if !self.decides {
            return Ok(());
        }
        let &Request { tsid, tclass, requested, hint, object } = request;
        let question = Question { ssid: asker.ssid, tsid, tclass };
        let verdict = self.avc.has_perm(question, requested, hint).ok();
        let granted = verdict.is_some_and(|verdict| verdict.granted());
        let audit = verdict.is_none_or(|verdict| !verdict.audit.is_empty());
        let trail = &asker.gate.audit;
        if audit || trail.wants_everything() {
            trail.record(
                asker,
                &Access { question, requested, verdict, granted, quiet: !audit, object: object() },
            );
        }
        if granted {
            return Ok(());
        }
        lacking::note_denial();
        Err(Denied)
    }
}

impl Manager {
    /// Whether policy grants it, without a record: for choosing an answer, not for giving access.
    pub(crate) fn grants(&self, q: Question, requested: AccessVector, hint: &Hint) -> bool {
        !self.decides
            || self.avc.has_perm(q, requested, hint).is_ok_and(|verdict| verdict.granted())
    }
}

impl Manager {
    /// Whether policy grants it and wants no record of that.
    pub(crate) fn passes(&self, q: Question, requested: AccessVector, hint: &Hint) -> bool {
        let passes = |verdict: avc::Verdict| verdict.granted() && verdict.audit.is_empty();
        !self.decides || self.avc.has_perm(q, requested, hint).is_ok_and(passes)
    }
}

impl From<Denied> for Errno {
    fn from(_: Denied) -> Self {
        Self::ACCESS
    }
}
