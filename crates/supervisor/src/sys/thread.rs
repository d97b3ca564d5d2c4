//! State of a thread that the kernel shares between threads by default.
#![allow(unsafe_code)]

use super::closing::Duplicate;
use rustix::{
    fs::OFlags,
    io::{Errno, Result},
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};
use std::os::fd::{AsRawFd, BorrowedFd};

/// `PIDFD_THREAD` of `linux/pidfd.h`, which is `O_EXCL`: not before Linux 6.9.
pub const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(OFlags::EXCL.bits());

/// Gives the calling thread a working directory, root and file mode creation mask of its own
/// (`CLONE_FS` of unshare(2)).
pub fn own_file_system_state() -> Result<()> {
    // SAFETY: unshare(CLONE_FS) copies the thread's `fs_struct`; no memory or descriptor changes
    // hands, and code that relied on sharing it with other threads exists nowhere in this process.
    let code = unsafe { libc::unshare(libc::CLONE_FS) };
    if code == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM))
}

const KCMP_VM: libc::c_int = 1;
const KCMP_FILES: libc::c_int = 2;

/// Whether two threads of the sandbox share their table of descriptors; no when in doubt (kcmp(2)).
pub fn same_descriptors(one: u32, other: u32) -> bool {
    one == other || compare(one, other, KCMP_FILES)
}

/// A duplicate of descriptor `fd` of thread `tid` of process `pid`, from the table that the thread
/// uses: it may be one of its own (`CLOSE_RANGE_UNSHARE`).
///
/// # Errors
///
/// `OPNOTSUPP` where that may be so, and the kernel has only descriptors of processes; else as of
/// pidfd_open(2) and pidfd_getfd(2).
pub fn take_descriptor(tid: u32, pid: u32, fd: i32) -> Result<Duplicate> {
    let open =
        |id: u32, flags| pidfd_open(Pid::from_raw(id.cast_signed()).ok_or(Errno::SRCH)?, flags);
    let thread = if tid == pid { Err(Errno::INVAL) } else { open(tid, PIDFD_THREAD) };
    let pidfd = match thread {
        Err(Errno::INVAL) if same_descriptors(tid, pid) => open(pid, PidfdFlags::empty())?,
        Err(Errno::INVAL) => return Err(Errno::OPNOTSUPP),
        thread => thread?,
    };
    pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty()).map(Duplicate::from)
}

/// Whether two threads of the sandbox share their memory; no when in doubt (kcmp(2)).
pub fn same_memory(one: u32, other: u32) -> bool {
    one == other || compare(one, other, KCMP_VM)
}

/// Whether descriptor `number` of a thread of the sandbox is of the same open file as `own`; no
/// when in doubt (kcmp(2)).
pub fn same_file(tid: u32, number: i32, own: BorrowedFd<'_>) -> bool {
    compare_file(tid, number, own) == Ok(true)
}

/// The same.
///
/// # Errors
///
/// What kcmp(2) says: [`Errno::PERM`] where it is refused, as by filters of containers.
pub fn compare_file(tid: u32, number: i32, own: BorrowedFd<'_>) -> Result<bool> {
    const KCMP_FILE: libc::c_int = 0;
    let this = rustix::thread::gettid().as_raw_pid();
    let own = own.as_raw_fd();
    // SAFETY: kcmp takes integers only.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, tid, this, KCMP_FILE, number, own) };
    match order {
        0 => Ok(true),
        1.. => Ok(false),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM)),
    }
}

/// Sends a process any signal, also one without a name; 0 only asks whether it is there
/// (pidfd_send_signal(2)).
pub fn signal(process: BorrowedFd<'_>, signal: i32) -> Result<()> {
    send(process, signal, std::ptr::null())
}

/// What a signal says of who has sent it: `siginfo_t`, as the kernel copies it.
#[derive(Debug)]
pub struct SignalInfo([u8; 128]);

impl SignalInfo {
    /// As somebody has queued it, whose own process and real user are these. That it was sent by
    /// kill(2) (`SI_USER`), nobody may say for another.
    pub fn queued(signal: i32, pid: u32, user: u32) -> Self {
        let mut info = Self::of_caller([0; 128], signal);
        info.put(8, libc::SI_QUEUE.to_ne_bytes());
        info.put(16, pid.to_ne_bytes());
        info.put(20, user.to_ne_bytes());
        info
    }

    /// What a program says itself, of `signal`.
    pub fn of_caller(info: [u8; 128], signal: i32) -> Self {
        let mut info = Self(info);
        info.put(0, signal.to_ne_bytes());
        info
    }

    fn put(&mut self, at: usize, bytes: [u8; 4]) {
        self.0[at..at + 4].copy_from_slice(&bytes);
    }
}

/// Sends a process, or a thread, whichever the descriptor is of, any signal, with what it says.
pub fn signal_with(process: BorrowedFd<'_>, signal: i32, info: &SignalInfo) -> Result<()> {
    send(process, signal, info.0.as_ptr())
}

/// `info` is null, or leads to 128 bytes.
fn send(process: BorrowedFd<'_>, signal: i32, info: *const u8) -> Result<()> {
    let pidfd = process.as_raw_fd();
    // SAFETY: the descriptor is borrowed for the call; the kernel copies what `info` leads to, the
    // size of a `siginfo_t`, or reads no memory if it is null.
    let code = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, signal, info, 0) };
    if code == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM))
}

/// Sends a signal to one thread of a process (tgkill(2)).
pub fn signal_thread(pid: u32, tid: u32, signal: i32) -> Result<()> {
    // SAFETY: tgkill takes integers only.
    let code = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) };
    if code == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM))
}

fn compare(one: u32, other: u32, what: libc::c_int) -> bool {
    // SAFETY: kcmp takes integers only.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one, other, what, 0, 0) };
    order == 0
}

/// A thread whose waiting calls can be ended.
#[derive(Clone, Copy, Debug)]
pub struct Interruptible(i32);

impl Interruptible {
    /// The calling thread. From now on `SIGURG`, which nobody else uses here, ends a call that
    /// waits by `EINTR`.
    pub fn current() -> Self {
        // SAFETY: `sigaction` is plain integers and a set of bits, for which all zeroes is a value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_interrupt as extern "C" fn(libc::c_int) as usize;
        // SAFETY: `action` lives until the call returns, and its handler, which has the type that a
        // handler without `SA_SIGINFO` must have, touches nothing.
        unsafe { libc::sigaction(libc::SIGURG, &raw const action, std::ptr::null_mut()) };
        Self(rustix::thread::gettid().as_raw_pid())
    }

    /// Ends the call that the thread waits in, if it does.
    pub fn interrupt(self) {
        let own = rustix::process::getpid().as_raw_pid();
        // SAFETY: tgkill takes integers; the signal is handled, by a function that does nothing.
        unsafe { libc::syscall(libc::SYS_tgkill, own, self.0, libc::SIGURG) };
    }
}

extern "C" fn on_interrupt(_: libc::c_int) {}
