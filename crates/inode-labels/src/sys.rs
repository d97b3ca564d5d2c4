//! What only the kernel knows of a file: its handle, and what time it is for file systems.
#![allow(unsafe_code)]

use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `AT_HANDLE_FID` of `linux/fcntl.h`, since Linux 6.5: a handle to compare, not to open by. More
/// file systems give one.
const AT_HANDLE_FID: libc::c_int = 0x200;

/// `struct file_handle` of `linux/fcntl.h`, with room for any.
#[repr(C)]
struct FileHandle {
    bytes: libc::c_uint,
    kind: libc::c_int,
    handle: [u8; libc::MAX_HANDLE_SZ as usize],
}

/// The handle of the file behind `fd`, which may be an `O_PATH` descriptor: its kind and bytes.
pub(crate) fn handle(fd: BorrowedFd<'_>) -> Result<(i32, Box<[u8]>), Errno> {
    match handle_by(fd, libc::AT_EMPTY_PATH | AT_HANDLE_FID) {
        Err(Errno::INVAL) => handle_by(fd, libc::AT_EMPTY_PATH),
        handle => handle,
    }
}

fn handle_by(fd: BorrowedFd<'_>, flags: libc::c_int) -> Result<(i32, Box<[u8]>), Errno> {
    let mut handle = FileHandle { bytes: 128, kind: 0, handle: [0; 128] };
    let mut mount: libc::c_int = 0;
    // SAFETY: the path is a literal that ends with a zero. The kernel writes at most `bytes` bytes
    // behind the two integers of `handle`, which has room for as many, and one integer to `mount`.
    let code = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            fd.as_raw_fd(),
            c"".as_ptr(),
            &raw mut handle,
            &raw mut mount,
            flags,
        )
    };
    if code != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    let bytes = handle.handle.get(..handle.bytes as usize).ok_or(Errno::OVERFLOW)?;
    Ok((handle.kind, bytes.into()))
}

/// The time of the last tick, in nanoseconds: no file that is made from now on is older.
pub(crate) fn last_tick() -> i128 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`, which `time` is. Of a clock that every kernel has, it
    // does not fail.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) };
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}
