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

/// What an object manager makes of a call: an answer, or the errno that the program sees.
pub type CallResult = std::result::Result<Answer, Errno>;
