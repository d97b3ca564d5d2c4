//! What this kernel offers, found out by trying.

use super::last_errno;
use rustix::{io::Errno, process::Pid};
use std::os::fd::{AsRawFd, BorrowedFd};

/// The version of the kernel's Landlock interface; `EOPNOTSUPP` or `ENOSYS` if there is none.
pub(crate) fn landlock_version() -> Result<u32, Errno> {
    const VERSION: u32 = 1;
    let null = std::ptr::null::<libc::c_void>();
    // SAFETY: with the version flag the kernel takes no attributes (a null pointer, size 0), and
    // creates nothing.
    let answer =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, null, 0_usize, VERSION) };
    u32::try_from(answer).map_err(|_| last_errno())
}

/// Whether a listener can be told to wake its caller up on the same processor.
pub(crate) fn probe_sync_wake_up(listener: BorrowedFd<'_>) -> Result<(), Errno> {
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    // SAFETY: this request takes its flags by value.
    let answer = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP)
    };
    if answer == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Whether a descriptor can be handed over and the call answered in one step.
pub(crate) fn probe_addfd_send(listener: BorrowedFd<'_>) -> Result<(), Errno> {
    let fd = listener.as_raw_fd();
    let request = libc::seccomp_notif_addfd {
        id: 0,
        flags: u32::try_from(libc::SECCOMP_ADDFD_FLAG_SEND).expect("a small flag"),
        srcfd: fd.cast_unsigned(),
        newfd: 0,
        newfd_flags: 0,
    };
    // SAFETY: the request reads one `seccomp_notif_addfd`, which lives until the call returns.
    // There is no call with the id 0 waiting, so nothing is handed over.
    let answer = unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const request) };
    match (answer, last_errno()) {
        // The flag is known: the kernel has gone on to look for the call.
        (_, Errno::NOENT | Errno::INPROGRESS) => Ok(()),
        (_, errno) => Err(errno),
    }
}

/// Whether the memory of `pid`, a child that was forked from this process, can be read.
pub(crate) fn probe_memory_of(pid: Pid) -> Result<(), Errno> {
    static SAMPLE: u64 = 0x0064_6577_6172_0000;
    let mut copy = 0_u64;
    let local = libc::iovec { iov_base: (&raw mut copy).cast(), iov_len: size_of::<u64>() };
    let remote =
        libc::iovec { iov_base: (&raw const SAMPLE).cast_mut().cast(), iov_len: size_of::<u64>() };
    // SAFETY: writes at most the eight bytes of `copy`, for which every value is valid; the
    // address in the other process is only read, and may be anything.
    let count = unsafe {
        libc::process_vm_readv(pid.as_raw_pid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    match count {
        8 if copy == SAMPLE => Ok(()),
        -1 => Err(last_errno()),
        _ => Err(Errno::IO),
    }
}
