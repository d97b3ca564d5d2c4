//! The controlling terminal: who has it, and giving it on.

use super::descendants::{group, stat_of};
use std::io::{stderr, stdin, stdout};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The controlling terminal of this process, if it has one.
pub(super) struct Terminal {
    tty: Option<OwnedFd>,
    /// This process's group, if it has a number here.
    own: Option<Pid>,
}

impl Terminal {
    /// Opens it. `SIGTTOU` should be blocked, so that giving the terminal on cannot stop us.
    pub(super) fn open(proc: BorrowedFd<'_>) -> Self {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let tty = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok();
        Self { tty, own: group(proc, getpid()) }
    }

    /// Whether it is this process's group that `group` is.
    pub(super) fn is_own(&self, group: Pid) -> bool {
        self.own == Some(group)
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
        self.is_own(getpid()) && self.is_ours() && !is_joined
    }

    fn is_ours(&self) -> bool {
        let foreground = self.tty.as_ref().and_then(|tty| tcgetpgrp(tty).ok());
        foreground.is_some_and(|group| self.is_own(group))
    }

    /// Gives the terminal to `group` if it is ours; whether it was.
    pub(super) fn hand_to(&self, group: Pid) -> bool {
        let ours = self.tty.as_ref().filter(|_| self.is_ours());
        ours.is_some_and(|tty| tcsetpgrp(tty, group).is_ok())
    }

    /// Takes the terminal back if the group that has it is gone, as a job-control shell in the
    /// sandbox leaves it: it cannot give the terminal back to a group outside of its namespace.
    pub(super) fn take_back(&self) {
        let (Some(tty), Some(own)) = (&self.tty, self.own) else { return };
        if let Ok(group) = tcgetpgrp(tty)
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
pub(super) fn is_orphaned(proc: BorrowedFd<'_>) -> bool {
    let Some(own) = stat_of(proc, getpid()) else { return false };
    let parent = Pid::from_raw(own.parent.cast_signed()).and_then(|parent| stat_of(proc, parent));
    let is_looked_after =
        parent.is_some_and(|it| it.session == own.session && it.group != own.group);
    own.group == getpid().as_raw_pid() && !is_looked_after
}
