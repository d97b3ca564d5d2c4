//! What can be taken from, and given to, a run that goes on: the rest was settled in the kernel at
//! its start.

use super::{Owner, PolicyInput, refused::RefusedChange};
use profile::{AmendedObject, Amendment, AmendmentKind};

/// Why reading cannot be taken from one domain in mode `fast`.
pub(super) const FAST: &str = "this run is in mode `fast`: opens for reading are left to the kernel, which does not tell \
                               domains apart. Take writing alone (--write), end the whole run (--kill, without \
                               --domain), or start it in mode `all`";

impl Owner {
    /// `amendment` with what its links lead to: where those of a revocation lead now, and where
    /// they led when what it gives back was taken. A grant alone gives what lies at its own path.
    pub(super) fn followed(&self, amendment: Amendment) -> Amendment {
        let led = match amendment.kind {
            AmendmentKind::Revoke => amendment.links(&self.facts.status.variables),
            AmendmentKind::Grant => {
                let input = self.state().input.clone();
                let is_it = |it: &&Amendment| {
                    it.kind == AmendmentKind::Revoke && it.object == amendment.object
                };
                input.amendments.iter().rfind(is_it).map(|it| it.led.clone()).unwrap_or_default()
            }
        };
        Amendment { led, ..amendment }
    }

    /// Says why something cannot be taken from, or given to, a run that goes on.
    pub(super) fn check(
        &self,
        amendment: &Amendment,
        input: &PolicyInput,
    ) -> Result<(), RefusedChange> {
        let revoked = |is: fn(&AmendedObject) -> bool| {
            let before = input.amendments.iter();
            before.filter(|a| a.kind == AmendmentKind::Revoke).any(|a| is(&a.object))
        };
        match (amendment.kind, &amendment.object) {
            (AmendmentKind::Grant, AmendedObject::Exec(_))
                if !revoked(|o| matches!(o, AmendedObject::Exec(_) | AmendedObject::Files(_))) =>
            {
                Err(RefusedChange::Exec)
            }
            (AmendmentKind::Grant, AmendedObject::Network { .. }) if self.offline => {
                Err(RefusedChange::Offline)
            }
            (AmendmentKind::Revoke, AmendedObject::Network { .. }) if self.own_loopback => {
                Err(RefusedChange::OwnLoopback)
            }
            (AmendmentKind::Grant, object)
                if *object != AmendedObject::All && everything_is_taken(input) =>
            {
                Err(RefusedChange::EverythingRevoked)
            }
            (AmendmentKind::Grant, AmendedObject::All) if !revoked(|_| true) => {
                Err(RefusedChange::NothingRevoked)
            }
            _ => Ok(()),
        }
    }
}

/// Whether it takes reading files from somebody.
pub(super) fn takes_reading(amendment: &Amendment) -> bool {
    amendment.kind == AmendmentKind::Revoke
        && matches!(amendment.object, AmendedObject::Files(_) | AmendedObject::All)
}

/// Whether everything was taken from all domains, and not given back.
fn everything_is_taken(input: &PolicyInput) -> bool {
    let all = |a: &&Amendment| a.object == AmendedObject::All && a.domain.is_none();
    input.amendments.iter().rfind(all).is_some_and(|a| a.kind == AmendmentKind::Revoke)
}
