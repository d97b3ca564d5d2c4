//! How a trapped call ends.

use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// How a trapped call ends.
#[derive(Debug)]
pub enum Answer {
    /// The program makes the call itself. Whoever gives this answer says why that is sound.
    Continue,
    /// The call has been made on the program's behalf, and returned this.
    Return(i64),
    /// The call has been made on the program's behalf, and opened this.
    Open {
        /// What was opened.
        fd: OwnedFd,
        /// Whether the program's descriptor ends with an exec.
        cloexec: bool,
    },
    /// The call is answered by another thread.
    Elsewhere,
    /// The call has left the way through the gate already, and comes again.
    Again,
}

/// `ERESTARTSYS` of `linux/errno.h`: with a signal pending, the kernel makes of it a restart or
/// `EINTR`, as the program has asked for with `SA_RESTART`.
pub const RESTART: Errno = Errno::from_raw_os_error(512);

/// `ERESTARTNOINTR` of `linux/errno.h`: the call is made anew, whatever signal is pending.
pub const ANEW: Errno = Errno::from_raw_os_error(513);

/// What an object manager makes of a call: an answer, or the errno that the program sees.
pub type CallResult = std::result::Result<Answer, Errno>;
