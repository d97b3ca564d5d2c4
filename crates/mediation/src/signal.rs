//! Signals to processes by their numbers.

use rustix::{
    io::{Errno, Result},
    process::{Pid, Signal, kill_process},
};

/// Sends a process a signal.
pub fn send(pid: u32, signal: Signal) -> Result<()> {
    kill_process(Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)?, signal)
}

/// Ends a process, if it is still there.
pub fn kill(pid: u32) {
    let _ = send(pid, Signal::KILL);
}
