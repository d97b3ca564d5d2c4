//! What an object manager does about an answer, or about none.

use crate::Verdict;
use flask::AccessVector;

/// What became of a request. Where the security server did not answer, or only by an older policy,
/// it is a denial of all that was requested, and all of that is to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessOutcome {
    requested: AccessVector,
    verdict: Option<Verdict>,
}

impl AccessOutcome {
    #[inline]
    pub(crate) const fn new(requested: AccessVector, verdict: Option<Verdict>) -> Self {
        Self { requested, verdict }
    }

    /// What was decided; `None` without an answer.
    #[inline]
    #[must_use]
    pub const fn verdict(self) -> Option<Verdict> {
        self.verdict
    }

    /// Whether the object manager lets the operation pass.
    #[inline]
    #[must_use]
    pub const fn granted(self) -> bool {
        match self.verdict {
            Some(verdict) => verdict.granted(),
            None => false,
        }
    }

    /// Requested permissions that are not granted.
    #[inline]
    #[must_use]
    pub const fn missing(self) -> AccessVector {
        match self.verdict {
            Some(verdict) => verdict.missing,
            None => self.requested,
        }
    }

    /// Whether there is something to record: what policy wants recorded, or that nobody answered.
    #[inline]
    #[must_use]
    pub const fn is_recorded(self) -> bool {
        match self.verdict {
            Some(verdict) => !verdict.audit.is_empty(),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;
    use flask::Decision;

    const READ: AccessVector = AccessVector(1);
    const WRITE: AccessVector = AccessVector(2);

    #[test]
    fn no_answer_denies_all_and_is_recorded() {
        let asked = AccessOutcome::new(READ | WRITE, None);
        assert_eq!((asked.granted(), asked.missing()), (false, READ | WRITE));
        assert!(asked.is_recorded());
    }

    #[test]
    fn an_answer_is_what_the_verdict_says() {
        for (auditdeny, permissive) in
            [(READ, false), (WRITE, false), (WRITE, true), (AccessVector::NONE, true)]
        {
            let decision = Decision { allowed: READ, auditdeny, permissive, ..Decision::DENY_ALL };
            for requested in [READ, WRITE, READ | WRITE] {
                let verdict = Verdict::new(decision, requested, Source::Hint);
                let asked = AccessOutcome::new(requested, Some(verdict));
                assert_eq!(asked.granted(), verdict.granted());
                assert_eq!(asked.missing(), verdict.missing);
                assert_eq!(asked.is_recorded(), !verdict.audit.is_empty());
            }
        }
    }
}
