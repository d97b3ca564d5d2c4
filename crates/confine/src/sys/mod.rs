//! The system calls of the launch that no library wraps safely: `clone`, `seccomp`,
//! `mount_setattr`, signal masks, `execve`, descriptor ranges, the loopback interface.
//!
//! Every function here is safe to call: what it needs to be sound it checks itself.
#![allow(unsafe_code)]

mod descriptors;
mod probe;
mod signals;

pub(crate) use descriptors::{
    close_all_but, close_inherited, closed_streams, duplicate, inheritable, is_open_socket,
    pass_only, receive_no_descriptors, silence,
};
pub(crate) use probe::{landlock_version, probe_addfd_send, probe_memory_of, probe_sync_wake_up};
pub use signals::ignore_background;
pub(crate) use signals::{
    SignalFd, SignalSet, Signalled, is_ignored, set_disposition, sigpipe_was_ignored,
};

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::AtFlags;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// One side of [`clone_process`].
pub(crate) enum Side {
    /// This is the new process.
    Child,
    /// This is the caller; the new process has the number `pid` and stays the one behind `pidfd`.
    Parent { pid: Pid, pidfd: OwnedFd },
}

/// Creates a process in the new namespaces that `namespaces` names (`CLONE_NEW*`).
///
/// # Errors
///
/// `EBUSY` if the calling process has more than one thread, else what `clone` says. Not `clone3`:
/// containers refuse that, because their filters cannot look at its flags.
pub(crate) fn clone_process(proc: BorrowedFd<'_>, namespaces: u64) -> Result<Side, Errno> {
    only_one_thread(proc)?;
    let mut pidfd: RawFd = -1;
    let flags = namespaces | (libc::CLONE_PIDFD | libc::SIGCHLD) as u64;
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: `pidfd`, where CLONE_PIDFD has a descriptor stored, lives until the call returns.
    // Without CLONE_VM and with no stack the child gets a copy of the memory, and goes on on its
    // copy of this stack; `only_one_thread` found that no other thread exists which could
    // have held a lock in that copy (nor can one appear: only this thread could create it), so
    // the child may go on as ordinary code does after fork().
    let answer = unsafe { libc::syscall(libc::SYS_clone, flags, none, &raw mut pidfd, none, none) };
    match answer {
        0 => Ok(Side::Child),
        -1 => Err(last_errno()),
        pid => {
            // SAFETY: the call succeeded with CLONE_PIDFD, so the kernel stored a new descriptor,
            // which nothing else owns, in `pidfd`.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::OVERFLOW)?;
            Ok(Side::Parent { pid, pidfd })
        }
    }
}

/// Creates a child process as `fork` does; `None` in the child.
///
/// # Errors
///
/// `EBUSY` if the calling process has more than one thread, else what `fork` says.
pub(crate) fn fork(proc: BorrowedFd<'_>) -> Result<Option<Pid>, Errno> {
    only_one_thread(proc)?;
    // SAFETY: as `only_one_thread` found, there is no other thread that could hold a lock in the
    // child's copy of the memory.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Refuses with `EBUSY` unless the calling thread is the only one: procfs gives `task` two links
/// plus one for every thread.
fn only_one_thread(proc: BorrowedFd<'_>) -> Result<(), Errno> {
    let task = rustix::fs::statat(proc, "self/task", AtFlags::empty())?;
    if task.st_nlink == 3 { Ok(()) } else { Err(Errno::BUSY) }
}

/// Moves the calling process into new namespaces.
///
/// # Errors
///
/// `EBUSY` if the calling process has more than one thread, else what `unshare` says.
pub(crate) fn unshare(proc: BorrowedFd<'_>, flags: UnshareFlags) -> Result<(), Errno> {
    only_one_thread(proc)?;
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: what makes this call unsafe is CLONE_FILES, which no caller passes and which would
    // be harmless here, as there is no other thread that shares descriptors with this one.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Installs `filter` for this thread and returns the descriptor on which it notifies.
///
/// # Errors
///
/// What `seccomp` says; `EINVAL` for a filter that the kernel's checker refuses.
pub(crate) fn install_filter(
    filter: &[libc::sock_filter],
    flags: libc::c_ulong,
) -> Result<OwnedFd, Errno> {
    let len = u16::try_from(filter.len()).map_err(|_| Errno::TOOBIG)?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    let flags = flags | libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // SAFETY: `program` points to `len` instructions that live until the call returns; the kernel
    // copies and checks them and never writes to them.
    let fd = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    owned(fd)
}

/// Installs `filter`, which notifies nobody, for this thread.
///
/// # Errors
///
/// What `seccomp` says.
pub(crate) fn install_plain_filter(filter: &[libc::sock_filter]) -> Result<(), Errno> {
    let len = u16::try_from(filter.len()).map_err(|_| Errno::TOOBIG)?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    // SAFETY: `program` points to `len` instructions that live until the call returns; the kernel
    // copies and checks them and never writes to them.
    let code = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    if code == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Sets mount attributes (`MOUNT_ATTR_*`) on the mount at `path` below `dir`.
///
/// # Errors
///
/// What `mount_setattr` says.
pub(crate) fn set_mount_attributes(
    dir: BorrowedFd<'_>,
    path: &std::ffi::CStr,
    set: u64,
    recursive: bool,
) -> Result<(), Errno> {
    let attributes = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: `path` ends with NUL and `attributes`, whose size is given, is read only; both live
    // until the call returns.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            dir.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if answer == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Replaces the program of this process. Returns only to say why it could not.
pub(crate) fn execve(path: &CString, arguments: &[CString], environment: &[CString]) -> Errno {
    let arguments = pointers(arguments);
    let environment = pointers(environment);
    // SAFETY: `path` ends with NUL; both arrays end with a null pointer and point to strings that
    // end with NUL and outlive the call, as the slices are borrowed until it returns.
    unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    last_errno()
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Ends this process at once, without destructors or exit handlers.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` has no precondition; nothing of this process runs afterwards.
    unsafe { libc::_exit(status) }
}

/// Brings the loopback interface of the current network namespace up.
pub(crate) fn bring_up_loopback() -> Result<(), Errno> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: `ifreq` consists of integers and a union of such, for which zero bytes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..2].copy_from_slice(&[b'l'.cast_signed(), b'o'.cast_signed()]);
    request.ifr_ifru.ifru_flags =
        (libc::IFF_UP | libc::IFF_RUNNING).try_into().expect("two low bits");
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`, which `request` is, with a name that ends with NUL.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if answer == 0 { Ok(()) } else { Err(last_errno()) }
}

fn owned(fd: libc::c_long) -> Result<OwnedFd, Errno> {
    match RawFd::try_from(fd) {
        // SAFETY: the callers pass what a system call answered that returns a new descriptor,
        // which nothing else owns.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(last_errno()),
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}
