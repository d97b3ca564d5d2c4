//! The way back from a change that failed, or panicked, halfway.

use super::{LoadError, Owner};
use monitor::{Control, RevokeMode};
use profile::Compiled;

/// Puts the former policy in force again, unless it is told that the new one is.
pub(super) struct Rollback<'a> {
    pub(super) owner: &'a Owner,
    pub(super) control: &'a Control,
    pub(super) former: &'a Compiled,
    pub(super) armed: bool,
}

impl Rollback<'_> {
    /// The new policy is in force.
    pub(super) fn disarm(mut self) {
        self.armed = false;
    }

    fn go(&self) -> Result<(), LoadError> {
        let decider = &self.owner.decider;
        let former = decider.compile(&self.former.cil)?;
        decider.load(former, self.control, RevokeMode::Repair)?;
        let receipt = self.control.apply(RevokeMode::Repair)?;
        decider.applied(receipt.seqno);
        self.owner.state().replaced.go_back(receipt.seqno);
        Ok(())
    }
}

impl Drop for Rollback<'_> {
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
