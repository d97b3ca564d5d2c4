//! What no safe library does: odd system calls of attacks, and the start of a run. The only
//! unsafe code of this crate.
#![allow(unsafe_code)]

mod odd;

pub(crate) use odd::*;

use crate::stage::Stage;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::{
    ffi::{CString, c_int, c_long},
    io,
    os::{
        fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::Path,
    process::Command,
    sync::atomic::{AtomicU8, Ordering},
};

/// The first descriptor that is handed in.
pub(crate) const INHERITED: c_int = 40;

fn answer(answer: c_long) -> io::Result<c_long> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn descriptor(fd: c_long) -> io::Result<OwnedFd> {
    let fd = answer(fd)?;
    let fd = c_int::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the caller passes what a call that makes a descriptor has just returned, so nobody
    // else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn path(path: &Path) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt as _;
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// Orphans of runs become this process's children.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Kills a process by its number.
pub(crate) fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Takes note of the end of an adopted process.
pub(crate) fn reap(pid: i32) {
    for _ in 0..100 {
        if !matches!(waitpid(Pid::from_raw(pid), WaitOptions::NOHANG), Ok(None)) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// How a run begins: a session of its own, without terminal or with the scene's; what is handed in
/// at its numbers; no longer than this process.
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one proof holds for all of them")]
pub(crate) fn prepare(command: &mut Command, stage: &Stage) {
    let inherited: Vec<c_int> = stage.inherited.iter().map(|fd| fd.as_raw_fd()).collect();
    let terminal = stage.terminal.as_ref().map(|fd| fd.as_raw_fd());
    let own_uts = stage.own_uts;
    let resolv = stage.nameserver.as_ref().and_then(|it| path(it).ok());
    let begin = move || -> io::Result<()> {
        // SAFETY: these calls take numbers, and strings that end in NUL and outlive the call; none
        // allocates, so they may be made between fork and exec. `dup2` replaces descriptors that
        // this process, which is about to become another program, uses for nothing.
        unsafe {
            answer(libc::setsid().into())?;
            answer(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL).into())?;
            if let Some(terminal) = terminal {
                answer(libc::ioctl(terminal, libc::TIOCSCTTY, 0).into())?;
                answer(libc::dup2(terminal, 0).into())?;
            }
            for (to, &from) in (INHERITED..).zip(&inherited) {
                answer(libc::dup2(from, to).into())?;
            }
            if own_uts {
                answer(libc::unshare(libc::CLONE_NEWUTS).into())?;
            }
            if let Some(resolv) = &resolv {
                answer(libc::unshare(libc::CLONE_NEWNS).into())?;
                let (none, flags) = (std::ptr::null(), libc::MS_REC | libc::MS_PRIVATE);
                answer(libc::mount(none, c"/".as_ptr(), none, flags, none.cast()).into())?;
                let (to, flags) = (c"/etc/resolv.conf", libc::MS_BIND);
                answer(libc::mount(resolv.as_ptr(), to.as_ptr(), none, flags, none.cast()).into())?;
            }
        }
        Ok(())
    };
    // SAFETY: `begin` does between fork and exec only what its own comment says.
    unsafe { command.pre_exec(begin) };
}

/// Sends bytes to an address of any form.
pub(crate) fn send_to(
    socket: BorrowedFd<'_>,
    data: &[u8],
    flags: c_int,
    to: &[u8],
) -> io::Result<()> {
    // SAFETY: both slices are read for their lengths, and nothing is kept.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            data.as_ptr().cast(),
            data.len(),
            flags | libc::MSG_NOSIGNAL,
            to.as_ptr().cast(),
            to.len() as libc::socklen_t,
        )
    };
    answer(sent as c_long).map(drop)
}

/// Connects to an address of any form.
pub(crate) fn connect(socket: BorrowedFd<'_>, to: &[u8]) -> io::Result<()> {
    let length = to.len() as libc::socklen_t;
    // SAFETY: the slice is read for its length, and nothing is kept.
    let done = unsafe { libc::connect(socket.as_raw_fd(), to.as_ptr().cast(), length) };
    answer(done.into()).map(drop)
}

/// An address that another thread changes while calls read it.
pub(crate) struct Shared(Vec<AtomicU8>);

impl Shared {
    /// Holds `first`, and has room for `room` bytes and a NUL that is never changed.
    pub(crate) fn new(first: &[u8], room: usize) -> Self {
        let shared = Self((0..=room.max(first.len())).map(|_| AtomicU8::new(0)).collect());
        shared.put(first);
        shared
    }

    /// Writes `bytes`, and NULs after them.
    pub(crate) fn put(&self, bytes: &[u8]) {
        let last = self.0.len() - 1;
        let padded = bytes.iter().copied().chain(std::iter::repeat(0));
        self.0[..last].iter().zip(padded).for_each(|(at, byte)| at.store(byte, Ordering::Relaxed));
    }

    /// Opens it as a path to read.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: the last byte is always NUL, so the kernel's copy ends within the buffer; the
        // buffer outlives the call; bytes that change meanwhile are atomic, and only the kernel
        // reads them here.
        descriptor(unsafe { libc::open(self.0.as_ptr().cast(), flags) }.into())
    }

    /// Connects to its first `length` bytes.
    pub(crate) fn connect(&self, socket: BorrowedFd<'_>, length: usize) -> io::Result<()> {
        let length = length.min(self.0.len()) as libc::socklen_t;
        // SAFETY: `length` bytes lie in the buffer, which outlives the call and is atomic, and
        // nothing is kept.
        let done = unsafe { libc::connect(socket.as_raw_fd(), self.0.as_ptr().cast(), length) };
        answer(done.into()).map(drop)
    }
}

/// Sets an option of a socket.
pub(crate) fn set_option(
    socket: BorrowedFd<'_>,
    (level, option): (c_int, c_int),
    value: &[u8],
) -> io::Result<()> {
    let length = value.len() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of the slice; callers pass no option whose value
    // holds pointers.
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, value.as_ptr().cast(), length)
    };
    answer(done.into()).map(drop)
}

/// A number that an option of a socket has.
pub(crate) fn option(socket: BorrowedFd<'_>, level: c_int, option: c_int) -> io::Result<c_int> {
    let (mut value, mut length) = (0_i32, size_of::<c_int>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `length` bytes to `value`, which has as many.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    answer(done.into()).map(|_| value)
}

/// Any socket.
pub(crate) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: three numbers.
    descriptor(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) }.into())
}

/// Binds a socket to an address of any form.
pub(crate) fn bind(socket: BorrowedFd<'_>, to: &[u8]) -> io::Result<()> {
    let length = to.len() as libc::socklen_t;
    // SAFETY: the slice is read for its length, and nothing is kept.
    let done = unsafe { libc::bind(socket.as_raw_fd(), to.as_ptr().cast(), length) };
    answer(done.into()).map(drop)
}

/// Traces a process, without stopping it.
pub(crate) fn seize(pid: i32) -> io::Result<()> {
    let none = std::ptr::null_mut::<u8>();
    // SAFETY: PTRACE_SEIZE reads no memory of this process.
    answer(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, none, none) }).map(drop)
}

/// Writes into another process's memory.
pub(crate) fn write_memory(pid: i32, at: usize, bytes: &[u8]) -> io::Result<()> {
    let here = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let there =
        libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(at), iov_len: bytes.len() };
    // SAFETY: the kernel reads `bytes` here, and the address there is one of another process.
    let written =
        unsafe { libc::process_vm_writev(pid, &raw const here, 1, &raw const there, 1, 0) };
    answer(written as c_long).map(drop)
}

/// Shared memory of System V with `content`, which every process of this user may attach.
pub(crate) fn share(content: &[u8]) -> io::Result<c_int> {
    // SAFETY: three numbers.
    let id = unsafe { libc::shmget(libc::IPC_PRIVATE, content.len(), libc::IPC_CREAT | 0o600) };
    let id = answer(id.into())? as c_int;
    with_shared(id, |at| {
        // SAFETY: the segment has at least the length of `content`, and is mapped at `at`.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), at, content.len()) };
    })?;
    Ok(id)
}

/// The first bytes of shared memory of System V.
pub(crate) fn shared(id: c_int, length: usize) -> io::Result<Vec<u8>> {
    let mut content = vec![0; length.min(4096)];
    with_shared(id, |at| {
        // SAFETY: a segment has at least one page of 4096 bytes mapped at `at`, and no more are
        // copied.
        unsafe { std::ptr::copy_nonoverlapping(at, content.as_mut_ptr(), content.len()) };
    })?;
    Ok(content)
}

fn with_shared(id: c_int, work: impl FnOnce(*mut u8)) -> io::Result<()> {
    // SAFETY: the kernel chooses the address, so nothing is replaced.
    let at = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    if at.addr() == usize::MAX {
        return Err(io::Error::last_os_error());
    }
    work(at.cast());
    // SAFETY: `at` was mapped above, and `work` keeps nothing of it.
    answer(unsafe { libc::shmdt(at) }.into()).map(drop)
}

/// Removes shared memory of System V.
pub(crate) fn unshare_memory(id: c_int) {
    // SAFETY: IPC_RMID reads and writes no memory.
    let _ = unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
}

/// Types one character into the controlling terminal.
pub(crate) fn type_in(terminal: BorrowedFd<'_>, character: u8) -> io::Result<()> {
    // SAFETY: the kernel reads one byte, which outlives the call.
    let done = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSTI, &raw const character) };
    answer(done.into()).map(drop)
}

/// `F_SETSIG` of `fcntl`.
const F_SETSIG: c_int = 10;

/// Lets the kernel signal a process when something happens to a descriptor.
pub(crate) fn set_owner(fd: BorrowedFd<'_>, pid: i32, signal: c_int) -> io::Result<()> {
    let fd = fd.as_raw_fd();
    // SAFETY: numbers only.
    answer(unsafe { libc::fcntl(fd, libc::F_SETOWN, pid) }.into())?;
    // SAFETY: numbers only.
    answer(unsafe { libc::fcntl(fd, F_SETSIG, signal) }.into())?;
    // SAFETY: numbers only.
    answer(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK) }.into())?;
    Ok(())
}

/// Enters new namespaces.
pub(crate) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: one number; callers ask for namespaces, not for descriptors or memory of their own.
    answer(unsafe { libc::unshare(flags) }.into()).map(drop)
}

/// Enters the namespace of a descriptor.
pub(crate) fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: two numbers.
    answer(unsafe { libc::setns(namespace.as_raw_fd(), 0) }.into()).map(drop)
}

/// Limits how many descriptors another process may have.
pub(crate) fn limit_descriptors(pid: i32, most: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    let none = std::ptr::null_mut();
    // SAFETY: the kernel reads `limit`, and writes nothing.
    answer(unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const limit, none) }.into())
        .map(drop)
}

/// Gives the machine another name.
pub(crate) fn name_machine(name: &str) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the name has.
    answer(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }.into()).map(drop)
}

/// A process that does nothing, until its time is over.
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one proof holds for all of them")]
pub(crate) fn idle_child(seconds: u32) -> io::Result<i32> {
    // SAFETY: the child calls only what may be called after a fork of a process with threads.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: as above; `_exit` does not return.
        unsafe {
            libc::close(0);
            libc::close(1);
            libc::close(2);
            libc::sleep(seconds);
            libc::_exit(0)
        }
    }
    Ok(answer(pid.into())? as i32)
}

/// Works with the first descriptor that was handed in, if it is open.
pub(crate) fn with_inherited(work: impl FnOnce(BorrowedFd<'_>)) {
    // SAFETY: F_GETFD reads no memory, and says whether the descriptor is open.
    if unsafe { libc::fcntl(INHERITED, libc::F_GETFD) } < 0 {
        return;
    }
    // SAFETY: it is open, and nothing in this program closes a descriptor that it has not opened
    // itself; the borrow ends with the call.
    work(unsafe { BorrowedFd::borrow_raw(INHERITED) });
}

/// Hands a descriptor to a program that is about to be started, as [`INHERITED`].
pub(crate) fn hand_in(command: &mut Command, file: OwnedFd) {
    let begin = move || {
        // SAFETY: two numbers; the descriptor that is replaced belongs to nobody in the new
        // process.
        answer(unsafe { libc::dup2(file.as_raw_fd(), INHERITED) }.into()).map(drop)
    };
    // SAFETY: `begin` makes one system call.
    unsafe { command.pre_exec(begin) };
}
