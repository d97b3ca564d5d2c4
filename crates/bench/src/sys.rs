//! What no library offers safely: fork, memory shared with children, the two ends of a seccomp
//! notification, and code in shared objects.
#![allow(unsafe_code)]

use rustix::process::Pid;
use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
    sync::atomic::AtomicU32,
};

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` of `linux/seccomp.h`.
const SYNC_WAKE_UP: u64 = 1;

/// A system call that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notification {
    /// What answers refer to.
    pub(crate) id: u64,
    /// Number of the system call.
    pub(crate) number: i64,
}

/// Runs `child` in a new process, which ends with the status that it returns. Meant for a process
/// with one thread; in one with several, `child` must not need what another thread may hold.
///
/// # Errors
///
/// When the system refuses another process.
pub(crate) fn fork(child: impl FnOnce() -> u8) -> io::Result<Pid> {
    // SAFETY: fork touches no memory of ours. The child runs on a copy of this stack, and leaves by
    // _exit below without returning into frames that the parent also returns into.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let status = catch_unwind(AssertUnwindSafe(child)).unwrap_or(101);
        // SAFETY: _exit takes any number and does not return; it runs no handler of the parent's.
        unsafe { libc::_exit(status.into()) }
    }
    // -1 is no process: it is the error.
    Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(io::Error::last_os_error)
}

/// Makes the calls of these numbers wait for whoever holds the descriptor returned; all others
/// pass. It holds for this thread and what it starts, for good, and needs `no_new_privs`.
///
/// # Errors
///
/// When the system refuses, for example because another listener is already there.
pub(crate) fn notify_on(numbers: &[i64]) -> io::Result<OwnedFd> {
    let mut filter = notifying_filter(numbers);
    let program =
        libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_mut_ptr() };
    // SAFETY: `program` points to `filter`, which has `len` instructions (at most a few, so the
    // length was not cut) and outlives the call; the kernel copies it and keeps no pointer.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned this descriptor (not negative), so it is open and nobody
    // else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Compares the number of each call with these, and lets every call run. It holds for this thread
/// and what it starts, for good, and needs `no_new_privs`.
///
/// # Errors
///
/// When the system refuses.
pub(crate) fn pass_all(numbers: &[i64]) -> io::Result<()> {
    let mut filter = notifying_filter(numbers);
    for instruction in &mut filter {
        if instruction.k == libc::SECCOMP_RET_USER_NOTIF {
            instruction.k = libc::SECCOMP_RET_ALLOW;
        }
    }
    let program =
        libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_mut_ptr() };
    // SAFETY: `program` points to `filter`, which has `len` instructions (two for each number, so
    // the length was not cut) and outlives the call; the kernel copies it and keeps no pointer.
    let done = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn notifying_filter(numbers: &[i64]) -> Vec<libc::sock_filter> {
    let instruction =
        |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let mut filter = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for number in numbers {
        filter.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, *number as u32));
        filter.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_USER_NOTIF));
    }
    filter.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    filter
}

/// Hands the processor straight over between the two ends, from now on.
///
/// # Errors
///
/// On kernels before 6.6.
pub(crate) fn wake_synchronously(listener: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: this request takes its flags by value; no memory of ours is involved.
    let done = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP)
    };
    check(done)
}

/// The next call that waits for an answer.
///
/// # Errors
///
/// `NotFound` when the caller is gone; whatever else the system says.
pub(crate) fn receive(listener: BorrowedFd<'_>) -> io::Result<Notification> {
    let mut received = libc::seccomp_notif {
        id: 0,
        pid: 0,
        flags: 0,
        data: libc::seccomp_data { nr: 0, arch: 0, instruction_pointer: 0, args: [0; 6] },
    };
    // SAFETY: the kernel writes one `seccomp_notif` to the address given, which is that of a live,
    // exclusively borrowed one, all zero as the request demands; every bit pattern is valid in its
    // integers.
    let done = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut received)
    };
    check(done)?;
    Ok(Notification { id: received.id, number: received.data.nr.into() })
}

/// Lets the call run as if nobody had asked.
///
/// # Errors
///
/// `NotFound` when the caller no longer waits.
pub(crate) fn let_continue(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let answer = libc::seccomp_notif_resp { id, val: 0, error: 0, flags };
    // SAFETY: the kernel reads one `seccomp_notif_resp` from the address given, that of a live one.
    let done = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer)
    };
    check(done)
}

/// Words that this process shares with those that it forks from now on, all 0. They stay for good.
///
/// # Errors
///
/// When the system has no memory.
pub(crate) fn shared_words() -> io::Result<&'static [AtomicU32]> {
    const BYTES: usize = 4096;
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: the address is the kernel's choice, so no mapping of ours is replaced.
    let start = unsafe { libc::mmap(ptr::null_mut(), BYTES, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a mapping of `BYTES` bytes has just been made there, page-aligned, zero, readable and
    // writable; it is never unmapped. Atomics may be shared, with other processes too.
    Ok(unsafe { slice::from_raw_parts(start.cast(), BYTES / size_of::<AtomicU32>()) })
}

/// Maps the first page of a file for reading, for good.
///
/// # Errors
///
/// When the system has no more mappings.
pub(crate) fn keep_mapped(file: &OwnedFd) -> io::Result<()> {
    const BYTES: usize = 4096;
    let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
    let fd = file.as_raw_fd();
    // SAFETY: the address is the kernel's choice, so no mapping of ours is replaced; nothing refers
    // to the new one.
    let start = unsafe { libc::mmap(ptr::null_mut(), BYTES, protection, flags, fd, 0) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn check(returned: libc::c_int) -> io::Result<()> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A function `long handle(const unsigned char *in, long n, unsigned char *out, long room)`.
type Handle = unsafe extern "C" fn(*const u8, libc::c_long, *mut u8, libc::c_long) -> libc::c_long;

/// A shared object of a kernel, which gcc made of a text that is part of this crate.
pub(crate) struct SharedObject {
    handle: Handle,
    /// Holds the code that `handle` points to.
    _library: libloading::Library,
}

impl SharedObject {
    /// Loads it.
    ///
    /// # Errors
    ///
    /// Says why it cannot be loaded.
    pub(crate) fn open(path: &std::path::Path) -> Result<Self, String> {
        // SAFETY: the object was made just now from one of this crate's kernels, which have no
        // initialisers.
        let library = unsafe { libloading::Library::new(path) }.map_err(|e| e.to_string())?;
        // SAFETY: every kernel defines `handle` with this signature.
        let handle = unsafe { library.get::<Handle>(c"handle") }.map_err(|e| e.to_string())?;
        let handle = *handle;
        Ok(Self { handle, _library: library })
    }

    /// Calls it; the length of the reply.
    pub(crate) fn handle(&self, request: &[u8], reply: &mut [u8]) -> usize {
        let (n, room) = (request.len() as libc::c_long, reply.len() as libc::c_long);
        // SAFETY: kernels read `n` bytes at `in` and write at most `room` bytes at `out`; these are
        // the lengths of the two slices. Their static data is theirs alone: this object has one
        // caller, by `&mut` of its owner.
        let length = unsafe { (self.handle)(request.as_ptr(), n, reply.as_mut_ptr(), room) };
        usize::try_from(length).unwrap_or(usize::MAX)
    }
}

/// Processor time that this thread has taken.
pub(crate) fn thread_time() -> std::time::Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec` to the address given, which is that of a live,
    // exclusively borrowed one. This clock exists for every thread, so the call does not fail; if
    // it did, the time would be 0.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Processor time that this process and the children it has waited for have taken.
pub(crate) fn own_and_children_time() -> std::time::Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec` to the address given, which is that of a live,
    // exclusively borrowed one. This clock exists for every process.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    // SAFETY: `rusage` consists of integers, for which all zero is valid.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `rusage` to the address given, which is that of a live,
    // exclusively borrowed one.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut used) };
    let of = |time: libc::timeval| {
        std::time::Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
    };
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        + of(used.ru_utime)
        + of(used.ru_stime)
}

/// Processor time that all threads of a process have taken, to the nanosecond; `None` if there is
/// no such process.
pub(crate) fn process_time(process: u32) -> Option<std::time::Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the library writes one `clockid_t` to the address given, that of a live, exclusively
    // borrowed one.
    let found = unsafe { libc::clock_getcpuclockid(process.cast_signed(), &raw mut clock) };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec` to the address given, which is that of a live,
    // exclusively borrowed one; for a clock that does not exist it writes nothing and fails.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (found == 0 && read == 0)
        .then(|| std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// What `work` returns, and how many instructions it took outside of the kernel.
///
/// # Errors
///
/// Says why this machine does not count.
pub(crate) fn instructions<T>(work: impl FnOnce() -> T) -> Result<(T, u64), String> {
    use perf_event::{Builder, events::Hardware};
    let why = |error: io::Error| format!("perf_event_open: {error}");
    let mut counter = Builder::new(Hardware::INSTRUCTIONS).exclude_kernel(true).build();
    let counter = counter.as_mut().map_err(|error| format!("perf_event_open: {error}"))?;
    counter.enable().map_err(why)?;
    let done = work();
    counter.disable().map_err(why)?;
    Ok((done, counter.read().map_err(why)?))
}
