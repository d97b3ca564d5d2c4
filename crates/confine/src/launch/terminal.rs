//! The controlling terminal: who has it, and giving it on.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, getpgrp, test_kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The controlling terminal of this process, if it has one.
pub(super) struct Terminal(Option<OwnedFd>);

impl Terminal {
    /// Opens it. `SIGTTOU` should be blocked, so that giving the terminal on cannot stop us.
    pub(super) fn open() -> Self {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        Self(rustix::fs::open("/dev/tty", flags, Mode::empty()).ok())
    }

    /// Gives the terminal to `group` if it is ours; whether it was.
    pub(super) fn hand_to(&self, group: Pid) -> bool {
        match &self.0 {
            Some(tty) if tcgetpgrp(tty) == Ok(getpgrp()) => tcsetpgrp(tty, group).is_ok(),
            _ => false,
        }
    }

    /// Takes the terminal back if the group that has it is gone, as a job-control shell in the
    /// sandbox leaves it: it cannot give the terminal back to a group outside of its namespace.
    pub(super) fn take_back(&self) {
        let Some(tty) = &self.0 else { return };
        if let Ok(group) = tcgetpgrp(tty)
            && group != getpgrp()
            && test_kill_process_group(group) == Err(Errno::SRCH)
        {
            // If it has been given to someone else meanwhile, that one keeps it.
            let _ = tcsetpgrp(tty, getpgrp());
        }
    }
}
