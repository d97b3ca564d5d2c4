//! State of a thread that the kernel shares between threads by default.
#![allow(unsafe_code)]

use rustix::io::{Errno, Result};

/// Gives the calling thread a working directory, root and file mode creation mask of its own
/// (`CLONE_FS` of unshare(2)).
pub(crate) fn own_file_system_state() -> Result<()> {
    // SAFETY: unshare(CLONE_FS) copies the thread's `fs_struct`; no memory or descriptor changes hands, and code
    // that relied on sharing it with other threads exists nowhere in this process.
    let code = unsafe { libc::unshare(libc::CLONE_FS) };
    if code == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM))
}
