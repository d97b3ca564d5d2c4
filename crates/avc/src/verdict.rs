//! What an object manager learns from its cache.

use flask::{AccessVector, Decision, Seqno};

/// Where a decision was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// At the place that the object's hint names.
    Hint,
    /// Elsewhere in the cache.
    Cache,
    /// Nowhere: the security server was asked.
    Server,
}

/// The answer to one request for permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Requested permissions that the policy does not grant.
    pub missing: AccessVector,
    /// Requested permissions that policy wants on record: of those missing by `auditdeny`, or, when
    /// none is missing, by `auditallow`. Nothing is recorded when it is empty.
    pub audit: AccessVector,
    /// The policy state that this follows from.
    pub seqno: Seqno,
    /// The source's domain is permissive: what is missing is recorded, and granted nevertheless.
    pub permissive: bool,
    /// Where the decision was found.
    pub source: Source,
}

impl Verdict {
    /// Whether the object manager lets the operation pass.
    #[inline]
    #[must_use]
    pub const fn granted(self) -> bool {
        self.missing.is_empty() || self.permissive
    }

    /// What `decision`, found at `source`, says about `requested`.
    #[inline]
    pub(crate) fn new(decision: Decision, requested: AccessVector, source: Source) -> Self {
        let missing = requested.missing_from(decision.allowed);
        let audit = if missing.is_empty() {
            requested & decision.auditallow
        } else {
            missing & decision.auditdeny
        };
        Self { missing, audit, seqno: decision.seqno, permissive: decision.permissive, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: AccessVector = AccessVector(1);
    const WRITE: AccessVector = AccessVector(2);

    fn verdict(decision: Decision, requested: AccessVector) -> Verdict {
        Verdict::new(decision, requested, Source::Server)
    }

    #[test]
    fn a_grant_is_recorded_only_where_auditallow_says_so() {
        let decision = Decision { allowed: READ | WRITE, auditallow: WRITE, ..Decision::DENY_ALL };
        for (requested, audit) in
            [(READ, AccessVector::NONE), (WRITE, WRITE), (READ | WRITE, WRITE)]
        {
            let verdict = verdict(decision, requested);
            assert!(verdict.granted());
            assert_eq!(verdict.audit, audit, "{requested:?}");
        }
    }

    #[test]
    fn a_denial_is_recorded_unless_auditdeny_leaves_it_out() {
        let decision = Decision { auditdeny: READ, ..Decision::DENY_ALL };
        for (requested, audit) in [(READ, READ), (WRITE, AccessVector::NONE)] {
            let verdict = verdict(decision, requested);
            assert!(!verdict.granted());
            assert_eq!((verdict.missing, verdict.audit), (requested, audit));
        }
    }

    #[test]
    fn a_permissive_domain_is_granted_what_it_misses_and_the_miss_is_recorded() {
        let decision = Decision { permissive: true, allowed: READ, ..Decision::DENY_ALL };
        let verdict = verdict(decision, READ | WRITE);
        assert!(verdict.granted());
        assert_eq!((verdict.missing, verdict.audit), (WRITE, WRITE));
    }

    #[test]
    fn a_verdict_and_its_error_fit_in_two_registers() {
        assert!(size_of::<Result<Verdict, flask::Unreachable>>() <= 16);
    }
}
