//! PID namespaces: ioctl_nsfs(2).
#![allow(unsafe_code)]

use rustix::io::{Errno, Result};
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// `NS_GET_TGID_FROM_PIDNS` of `linux/nsfs.h`.
const NS_GET_TGID_FROM_PIDNS: libc::Ioctl = 0x8004_b707;

/// The caller's PID of the process that has, or one of whose threads has, the number `inner` in a
/// PID namespace. `ESRCH` if there is none; `ENOTTY` before Linux 6.11.
pub(crate) fn process_in(namespace: BorrowedFd<'_>, inner: u32) -> Result<u32> {
    // SAFETY: the third argument of this request is an integer, not a pointer.
    let pid = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_TGID_FROM_PIDNS, inner) };
    let failed = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
    u32::try_from(pid).map_err(|_| failed())
}
