//! What can be taken from, and given to, a run that goes on: the rest was settled in the kernel at its start.

use super::{Owner, Terms};
use profile::{AmendedObject, Amendment, AmendmentKind};

/// Classes of sockets that some domain may create.
pub(super) type Families = Vec<&'static str>;

/// Why reading cannot be taken in mode `fast`.
pub(super) const FAST: &str = "this run is in mode `fast`: opens for reading are left to the kernel, which cannot take them back. Take \
                    writing alone (--write), end the whole run (--kill, without --domain), or start it in mode `all`";

impl Owner {
    /// Says why something cannot be taken from, or given to, a run that goes on.
    pub(super) fn check(&self, amendment: &Amendment, terms: &Terms) -> Result<(), String> {
        let revoked = |is: fn(&AmendedObject) -> bool| {
            let before = terms.amendments.iter();
            before.filter(|a| a.kind == AmendmentKind::Revoke).any(|a| is(&a.object))
        };
        match (amendment.kind, &amendment.object) {
            (AmendmentKind::Grant, AmendedObject::Files(_)) if self.leaves_reads() => {
                Err("this run is in mode `fast`: what can be read was settled in the kernel at its start; start it anew".into())
            }
            (AmendmentKind::Grant, AmendedObject::Exec(_))
                if !revoked(|o| matches!(o, AmendedObject::Exec(_) | AmendedObject::Files(_))) =>
            {
                Err("what can be executed was settled in the kernel when the run started: only what was revoked can be \
                     given back".into())
            }
            (AmendmentKind::Grant, AmendedObject::Network { .. }) if !self.families.iter().any(|f| f.ends_with("p_socket")) => {
                Err("this run was started without a network: its domains can make no such socket, and it may have a network \
                     namespace of its own. Start it under a profile that names an endpoint".into())
            }
            (AmendmentKind::Grant, object) if *object != AmendedObject::All && everything_is_taken(terms) => {
                Err("everything was revoked; `dewar grant --all` gives it back".into())
            }
            (AmendmentKind::Grant, AmendedObject::All) if !revoked(|_| true) => Err("nothing was revoked".into()),
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
fn everything_is_taken(terms: &Terms) -> bool {
    let all = |a: &&Amendment| a.object == AmendedObject::All && a.domain.is_none();
    terms.amendments.iter().rfind(all).is_some_and(|a| a.kind == AmendmentKind::Revoke)
}

/// The classes of sockets that some domain of a policy may create. The filter of a run guards those that it started
/// with.
pub(super) fn families(cil: &str) -> Families {
    const FAMILIES: [&str; 3] = ["tcp_socket", "udp_socket", "unix_dgram_socket"];
    let rules = |class: &str| format!(" self ({class} (");
    FAMILIES.into_iter().filter(|class| cil.contains(&rules(class))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_those_that_a_policy_lets_some_domain_create() {
        let cil =
            "(allow git_t self (tcp_socket (create bind)))\n(allow a_t b_t (udp_socket (create)))";
        assert_eq!(families(cil), ["tcp_socket"]);
    }
}
