//! Signals to processes of the sandbox.

use crate::sys::thread;
use confine::launch::with_raised;
use proc::ProcessTree;
use rustix::{
    io::{Errno, Result},
    process::{Pid, PidfdFlags, pidfd_open},
    thread::CapabilitySet,
};
use std::os::fd::AsFd as _;

/// Sends a process of the sandbox any signal, also one without a name.
///
/// # Errors
///
/// `ESRCH` if the number is that of nobody, or of a process outside.
pub fn signal_inside(tree: &ProcessTree, pid: u32, signal: i32) -> Result<()> {
    let number = Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)?;
    let process = pidfd_open(number, PidfdFlags::empty())?;
    // A number is that of a process inside once its descriptor is held.
    if !tree.is_inside(pid) {
        return Err(Errno::SRCH);
    }
    with_raised(CapabilitySet::KILL, || thread::signal(process.as_fd(), signal))
}

/// Ends a process of the sandbox, if it is still there.
pub fn kill_inside(tree: &ProcessTree, pid: u32) {
    let _ = signal_inside(tree, pid, libc::SIGKILL);
}
