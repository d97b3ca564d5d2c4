//! What a function returns when it fails, and in words.

use object_manager::{ChangeError, Denied, OpenError, PolicyFault};
use std::{
    cell::RefCell,
    ffi::{CString, c_char, c_int},
    fmt::Display,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
};

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Why a call failed: `errno`, and in words.
pub(super) struct Failure(pub(super) c_int, pub(super) String);

impl Failure {
    pub(super) fn invalid(what: impl Display) -> Self {
        Self(libc::EINVAL, what.to_string())
    }
}

pub(super) fn number(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}

pub(super) fn policy_errno(fault: &PolicyFault) -> c_int {
    match fault {
        PolicyFault::Io { source, .. } => number(source),
        PolicyFault::Missing => libc::EINVAL,
        _ => libc::EBADMSG,
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let errno = match &error {
            OpenError::Policy(fault) => policy_errno(fault),
            OpenError::Classes(_) => libc::EINVAL,
            OpenError::Io(error) => number(error),
            _ => libc::ENOTCONN,
        };
        Self(errno, error.to_string())
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        let errno = match &error {
            ChangeError::Policy(fault) => policy_errno(fault),
            ChangeError::Boolean(_) => libc::EINVAL,
            _ => libc::ENOTCONN,
        };
        Self(errno, error.to_string())
    }
}

/// What a function returns: what `call` gives, or `failed` with `errno` and a message. A panic is a
/// failure.
pub(super) fn returned<T>(failed: T, call: impl FnOnce() -> Result<T, Failure>) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(call));
    let Failure(errno, words) = match outcome {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => failure,
        Err(_) => Failure(libc::EIO, "a fault of the library itself".into()),
    };
    // Words with a 0 in the middle end there.
    let words = CString::new(words.split('\0').next().unwrap_or_default()).unwrap_or_default();
    let _ = MESSAGE.try_with(|message| message.replace(words));
    // SAFETY: it has no conditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno is valid while the thread runs, and nobody else's.
    unsafe { *place = errno };
    failed
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        let errno = if denied.answered { libc::EACCES } else { libc::ENOTCONN };
        Self(errno, denied.to_string())
    }
}

/// See `dewar.h`.
#[unsafe(no_mangle)]
pub extern "C" fn dewar_message() -> *const c_char {
    // A thread that ends has no message any more.
    MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
