//! Core files that nobody leaves any more after a change.

use super::{Finding, Held, PolicyTransition};
use rustix::{
    io::{Errno, Result},
    process::{Pid, Resource, Rlimit, prlimit},
};

impl PolicyTransition<'_> {
    /// Has a process, and those that it makes, leave no core file any more, once policy on files
    /// has changed: the kernel would write it where the envelope lets the run write.
    pub(super) fn end_cores(&mut self, pid: u32) {
        if self.changes_files && lower_cores(pid).is_err() {
            let core = Finding::vague(Held::Settled, "a core file");
            self.kill(pid, &[core], "its limit on core files cannot be lowered");
        }
    }
}

/// Sets the limit on core files to 0, for good. A process that is gone leaves none either.
fn lower_cores(pid: u32) -> Result<()> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let pid = Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)?;
    match prlimit(Some(pid), Resource::Core, none) {
        Err(Errno::SRCH) => Ok(()),
        lowered => lowered.map(drop),
    }
}
