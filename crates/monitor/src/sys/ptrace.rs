//! Seizing a thread for the length of one exec (ptrace(2)).
#![allow(unsafe_code)]

use rustix::io::{Errno, Result};

/// A seized thread. Dropped without a wait, it stays seized until the calling thread ends, which kills it
/// (`PTRACE_O_EXITKILL`).
pub(crate) struct Seized {
    tid: u32,
}

/// What became of a seized thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It has executed a new program and stands before its first instruction.
    Executed,
    /// It stopped on its way back to the program; this signal is due, or 0.
    Stopped { signal: i32 },
    /// It is dead.
    Gone,
}

impl Seized {
    /// Seizes `tid` and makes it stop at an exec, or when it next returns to its program.
    pub(crate) fn new(tid: u32) -> Result<Self> {
        let options = libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_EXITKILL;
        request(libc::PTRACE_SEIZE, tid, options as usize)?;
        if let Err(error) = request(libc::PTRACE_INTERRUPT, tid, 0) {
            detach(tid, 0);
            return Err(error);
        }
        Ok(Self { tid })
    }

    /// Waits for the exec, or for its failure.
    pub(crate) fn wait(self) -> Result<Event> {
        let mut status = 0;
        loop {
            // A thread that executes takes over its process's PID, so the wait is for whatever this thread traces;
            // it traces nothing else, and `__WNOTHREAD` leaves other threads' children alone.
            // SAFETY: `status` is a valid place for the one integer that waitpid writes.
            let pid =
                unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
            if pid < 0 {
                match last_errno() {
                    Errno::INTR => continue,
                    Errno::CHILD => return Ok(Event::Gone),
                    error => return Err(error),
                }
            }
            if let Some(event) = event(status) {
                return Ok(event);
            }
            if pid as u32 == self.tid {
                return Ok(Event::Gone);
            }
        }
    }
}

fn event(status: i32) -> Option<Event> {
    if !libc::WIFSTOPPED(status) {
        return None;
    }
    Some(match status >> 16 {
        libc::PTRACE_EVENT_EXEC => Event::Executed,
        0 => Event::Stopped { signal: libc::WSTOPSIG(status) },
        _ => Event::Stopped { signal: 0 },
    })
}

/// Lets a stopped thread go, with a signal or 0.
pub(crate) fn detach(tid: u32, signal: i32) {
    // It is dead when this fails.
    let _ = request(libc::PTRACE_DETACH, tid, signal as usize);
}

fn request(request: libc::c_uint, tid: u32, data: usize) -> Result<()> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: SEIZE, INTERRUPT and DETACH read no memory of ours: `addr` is null and `data` an integer.
    let code = unsafe { libc::ptrace(request, tid as libc::pid_t, none, data) };
    if code == -1 { Err(last_errno()) } else { Ok(()) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
