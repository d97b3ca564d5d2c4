//! The controlling terminal: who has it, and giving it on.

use crate::sys::{group_of, session_of};
use std::io::{stderr, stdin, stdout};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;
use rustix::process::{Pid, getpid, getppid, test_kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The controlling terminal of this process, if it has one.
pub(super) struct Terminal(Option<OwnedFd>);

impl Terminal {
    /// Opens it. `SIGTTOU` should be blocked, so that giving the terminal on cannot stop us.
    pub(super) fn open() -> Self {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        Self(rustix::fs::open("/dev/tty", flags, Mode::empty()).ok())
    }

    /// Whether a job in the foreground is Dewar alone, so that the command can have the terminal in
    /// a group of its own. Where Dewar leads no group, or a pipe joins others to it (`| less`),
    /// these need the terminal and its keys, too.
    pub(super) fn is_for_one(&self) -> bool {
        let (input, output, errors) = (stdin(), stdout(), stderr());
        let is_joined = [input.as_fd(), output.as_fd(), errors.as_fd()].into_iter().any(|stream| {
            let kind = fstat(stream).map(|stat| FileType::from_raw_mode(stat.st_mode));
            matches!(kind, Ok(FileType::Fifo | FileType::Socket))
        });
        group_of(None) == Some(getpid()) && self.is_ours() && !is_joined
    }

    fn is_ours(&self) -> bool {
        let foreground = self.0.as_ref().and_then(|tty| tcgetpgrp(tty).ok());
        foreground.is_some() && foreground == group_of(None)
    }

    /// Gives the terminal to `group` if it is ours; whether it was.
    pub(super) fn hand_to(&self, group: Pid) -> bool {
        let ours = self.0.as_ref().filter(|_| self.is_ours());
        ours.is_some_and(|tty| tcsetpgrp(tty, group).is_ok())
    }

    /// Takes the terminal back if the group that has it is gone, as a job-control shell in the
    /// sandbox leaves it: it cannot give the terminal back to a group outside of its namespace.
    pub(super) fn take_back(&self) {
        let Some(tty) = &self.0 else { return };
        if let Ok(group) = tcgetpgrp(tty)
            && let Some(own) = group_of(None)
            && group != own
            && test_kill_process_group(group) == Err(Errno::SRCH)
        {
            // If it has been given to someone else meanwhile, that one keeps it.
            let _ = tcsetpgrp(tty, own);
        }
    }
}

/// Whether this process leads a group that no shell looks after: nobody would continue it, so the
/// kernel does not stop it by `SIGTSTP`, `SIGTTIN` and `SIGTTOU`.
pub(super) fn is_orphaned() -> bool {
    let looks_after = |parent: Pid| {
        session_of(Some(parent)) == session_of(None) && group_of(Some(parent)) != group_of(None)
    };
    group_of(None) == Some(getpid()) && !getppid().is_some_and(looks_after)
}
