//! Limits of other processes (prlimit(2)).
#![allow(unsafe_code)]

use rustix::io::{Errno, Result};

/// The soft limit on file locks (`RLIMIT_LOCKS`) of the process of a thread; `u64::MAX` for none.
///
/// # Errors
///
/// `SRCH`, or `PERM` if its IDs are not those of this process.
pub fn file_locks(tid: u32) -> Result<u64> {
    soft(tid, libc::RLIMIT_LOCKS)
}

/// One more than the highest number that a descriptor of the process of a thread may get
/// (`RLIMIT_NOFILE`).
///
/// # Errors
///
/// `SRCH`, or `PERM` if its IDs are not those of this process.
pub fn open_files(tid: u32) -> Result<u64> {
    soft(tid, libc::RLIMIT_NOFILE)
}

fn soft(tid: u32, resource: libc::__rlimit_resource_t) -> Result<u64> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one `rlimit64`, which `limit` is; without a new limit it reads no
    // memory.
    let code =
        unsafe { libc::prlimit64(tid.cast_signed(), resource, std::ptr::null(), &raw mut limit) };
    if code == 0 {
        return Ok(limit.rlim_cur);
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM))
}
