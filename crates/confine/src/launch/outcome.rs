//! How a command ended, and how Dewar ends the same way.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};

use crate::sys;

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStatus {
    /// It exited with this status.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
    /// It ran longer than the limit, and was ended.
    TimedOut,
    /// It could not be executed.
    NotExecuted(Errno),
}

impl CommandStatus {
    /// The exit status that a shell would show: 124 after the time limit, as with `timeout`; 127
    /// for a command that was not found, and 126 for one that was found but not executed.
    #[must_use]
    pub fn status(self) -> i32 {
        match self {
            Self::Exited(status) => status,
            Self::Killed(signal) => 128 + signal,
            Self::TimedOut => 124,
            Self::NotExecuted(Errno::NOENT) => 127,
            Self::NotExecuted(_) => 126,
        }
    }

    /// Ends this process as the command ended: with its status, or by the same signal (but
    /// without a core dump, which would not be the command's).
    pub fn leave(self) -> ! {
        if let Self::Killed(number) = self {
            die_by(number);
        }
        std::process::exit(self.status())
    }
}

/// Kills this process by the signal `number`; returns if that cannot be.
fn die_by(number: i32) {
    let Some(signal) = Signal::from_named_raw(number) else { return };
    let core = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    if setrlimit(Resource::Core, core).is_err() {
        return;
    }
    sys::set_disposition(number, false);
    let delivered = kill_process(getpid(), signal);
    sys::SignalSet::of(&[number]).unblock();
    debug_assert!(delivered.is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_a_shell() {
        let table = [
            (CommandStatus::Exited(3), 3),
            (CommandStatus::Killed(9), 137),
            (CommandStatus::TimedOut, 124),
            (CommandStatus::NotExecuted(Errno::NOENT), 127),
            (CommandStatus::NotExecuted(Errno::ACCESS), 126),
            (CommandStatus::NotExecuted(Errno::NOEXEC), 126),
        ];
        for (outcome, status) in table {
            assert_eq!(outcome.status(), status, "{outcome:?}");
        }
    }
}
