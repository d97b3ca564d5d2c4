//! What can be taken from, and given to, a run that goes on: the rest was settled in the kernel at
//! its start.

use super::{Owner, PolicyInput, refused::RefusedChange};
use profile::{AmendedObject, Amendment, AmendmentKind};

/// Why reading cannot be taken from one domain in mode `fast`.
pub(super) const FAST: &str = "this run is in mode `fast`: opens for reading are left to the kernel, which does not tell \
                               domains apart. Take writing alone (--write), end the whole run (--kill, without \
                               --domain), or start it in mode `all`";

impl Owner {
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
