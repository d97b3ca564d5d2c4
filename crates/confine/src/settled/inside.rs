//! Whether a run inside can be held by what was told the kernel for the run around it.

use super::{Conflict, Settled, UNDECIDED};
use crate::policy::{KernelPolicy, allowed};
use flask::{Class, SecurityServer, perm};

impl Settled {
    /// Whether every process of the run can be under `policy`, that of `server`, in addition:
    /// nothing that it refuses is granted by the kernel without asking. `strict` says that what it
    /// hides must not show by its name either.
    ///
    /// # Errors
    ///
    /// [`Conflict::Inside`]: what cannot be held.
    pub fn admits_inside(
        &self,
        server: &dyn SecurityServer,
        policy: &KernelPolicy,
        strict: bool,
    ) -> Result<(), Conflict> {
        let refuse = |what: &str| Err(Conflict::Inside(what.into()));
        let [domain] = policy.plan.domains[..] else {
            return refuse(
                "the profile has several domains, which cannot be told apart inside of a run. Name its programs in one \
                 profile, or start the run around it under this one",
            );
        };
        if self.reads_pass() {
            return refuse(
                "the run around it is in mode `fast`, which leaves reading to the kernel. Start that in mode `all`",
            );
        }
        if strict && !self.traps.looks {
            return refuse(
                "what it hides shows by its name: the run around it does not decide who looks at a name. Leave out \
                 `hiding = \"strict\"`, or start the run around it with that",
            );
        }
        for (row, what) in UNDECIDED.iter().enumerate() {
            // Whoever can make no such socket has none to listen at; making one is decided.
            let makes = match what.class {
                Class::TcpSocket | Class::UdpSocket | Class::RawipSocket => {
                    what.requested != perm::socket::CREATE
                        && allowed(server, domain, what.class)?.contains(perm::socket::CREATE)
                }
                _ => true,
            };
            let undecided = self.undecided.iter().any(|(_, of)| *of == row);
            if makes && undecided && !allowed(server, domain, what.class)?.contains(what.requested)
            {
                return refuse(&format!(
                    "it denies `{}`, which the kernel was told at the start of the run around it that all may",
                    what.name
                ));
            }
        }
        let more = self.capabilities & !policy.capabilities;
        let names = Class::Capability.permissions().iter().enumerate();
        if let Some((_, name)) = names.into_iter().find(|(bit, _)| more & 1 << bit != 0) {
            return refuse(&format!(
                "it does not have the capability {name}, which the processes of the run around it keep"
            ));
        }
        Ok(())
    }
}
