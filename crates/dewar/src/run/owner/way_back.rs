//! The way back from a change that failed, or panicked, halfway.

use super::{Owner, POLICY_NAME};
use monitor::{Control, Manner};
use profile::Compiled;
use security_server::cil;

/// Puts the former policy in force again, unless it is told that the new one is.
pub(super) struct WayBack<'a> {
    pub(super) owner: &'a Owner,
    pub(super) control: &'a Control,
    pub(super) former: &'a Compiled,
    pub(super) armed: bool,
}

impl WayBack<'_> {
    /// The new policy is in force.
    pub(super) fn disarm(mut self) {
        self.armed = false;
    }

    fn go(&self) -> Result<(), String> {
        let policy = cil::compile(&[(POLICY_NAME, &self.former.cil)]).map_err(|e| e.to_string())?;
        self.owner.server.replace(&self.former.cil, policy)?;
        self.control.apply(Manner::Repair).map(drop).map_err(|error| error.to_string())
    }
}

impl Drop for WayBack<'_> {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        if let Err(error) = self.go() {
            // Neither policy is known to hold. The sandbox ends with this process.
            crate::output::tell!(
                "dewar: a change of policy failed halfway, and so did the way back ({error}); the run ends"
            );
            std::process::exit(crate::failure::SETUP.into());
        }
    }
}
