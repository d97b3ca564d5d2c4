//! The system calls of the launch that no library wraps safely: `clone3`, `seccomp`,
//! `mount_setattr`, signal masks, `execve`, descriptor ranges, the loopback interface.
//!
//! Every function here is safe to call: what it needs to be sound it checks itself.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, CWD};
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
/// `EBUSY` if the calling process has more than one thread, else what `clone3` says.
pub(crate) fn clone_process(proc: BorrowedFd<'_>, namespaces: u64) -> Result<Side, Errno> {
    only_one_thread(proc)?;
    let mut pidfd: RawFd = -1;
    // SAFETY: `clone_args` consists of integers, for which all-zero bytes are a valid value.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = namespaces | libc::CLONE_PIDFD as u64;
    args.pidfd = (&raw mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: `args` and `pidfd` live until the call returns. Without CLONE_VM the child gets a
    // copy of the memory, and `only_one_thread` found that no other thread exists which could
    // have held a lock in that copy (nor can one appear: only this thread could create it), so
    // the child may go on as ordinary code does after fork().
    let answer =
        unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) };
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

/// A set of signals.
#[derive(Clone, Copy)]
pub(crate) struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// The set of `signals`; numbers that are no signals are left out.
    pub(crate) fn of(signals: &[i32]) -> Self {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the whole set it is given.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        for &signal in signals {
            // SAFETY: the set was initialised above; a bad number is answered with EINVAL.
            unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
        }
        // SAFETY: initialised by `sigemptyset`.
        Self(unsafe { set.assume_init() })
    }

    /// Blocks these signals in the calling thread, besides those blocked already.
    pub(crate) fn block(&self) -> Self {
        self.change_mask(libc::SIG_BLOCK)
    }

    /// Lets these signals through in the calling thread.
    pub(crate) fn unblock(&self) -> Self {
        self.change_mask(libc::SIG_UNBLOCK)
    }

    /// Makes this set the mask of the calling thread.
    pub(crate) fn install(&self) -> Self {
        self.change_mask(libc::SIG_SETMASK)
    }

    /// Changes the mask of the calling thread and returns the one before.
    fn change_mask(&self, how: i32) -> Self {
        let mut before = Self::of(&[]);
        // SAFETY: both sets are initialised and live until the call returns; the kernel never
        // blocks the signals that the C library needs for itself. `how` is one of the three
        // valid values, so the call cannot fail.
        unsafe { libc::pthread_sigmask(how, &raw const self.0, &raw mut before.0) };
        before
    }
}

/// What came in on a [`SignalFd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signalled {
    /// The signal's number.
    pub(crate) signal: i32,
    /// Who sent it, in this process's pid namespace; `None` if the kernel did (the terminal).
    pub(crate) sender: Option<Pid>,
}

/// Receives blocked signals as readable events.
pub(crate) struct SignalFd(OwnedFd);

impl SignalFd {
    /// Receives `set`, which the caller has blocked.
    pub(crate) fn new(set: &SignalSet) -> Result<Self, Errno> {
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: `set` is initialised and only read; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &raw const set.0, flags) };
        Ok(Self(owned(fd.into())?))
    }

    /// The next signal; `None` if none is pending.
    pub(crate) fn next(&self) -> Option<Signalled> {
        let mut bytes = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let read = rustix::io::read(&self.0, &mut bytes).ok()?;
        if read != bytes.len() {
            return None;
        }
        // SAFETY: `bytes` holds a whole `signalfd_siginfo` (the length was checked), which
        // consists of integers only; the read is unaligned.
        let info = unsafe { bytes.as_ptr().cast::<libc::signalfd_siginfo>().read_unaligned() };
        // Codes up to zero (SI_USER, SI_QUEUE, SI_TKILL …) are those that a process can send.
        let by_process = info.ssi_code <= 0;
        let sender = if by_process { Pid::from_raw(info.ssi_pid.cast_signed()) } else { None };
        Some(Signalled { signal: info.ssi_signo.cast_signed(), sender })
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Gives `signal` its default action back, or ignores it.
pub(crate) fn set_disposition(signal: i32, ignore: bool) {
    let handler = if ignore { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: neither SIG_IGN nor SIG_DFL runs code of this program.
    unsafe { libc::signal(signal, handler) };
}

static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether this process was started with `SIGPIPE` ignored (Rust ignores it before `main`).
pub(crate) fn sigpipe_was_ignored() -> bool {
    SIGPIPE_WAS_IGNORED.load(Ordering::Relaxed)
}

extern "C" fn note_sigpipe() {
    SIGPIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// Whether this process ignores `signal`.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null `act` only asks; the answer is written to `action`, which is large enough.
    let answer = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all-zero bytes are a valid `sigaction` (integers, and a nullable pointer), and the
    // call above wrote a valid one if it succeeded.
    let action = unsafe { action.assume_init() };
    answer == 0 && action.sa_sigaction == libc::SIG_IGN
}

// SAFETY: the C start-up code calls each function of this section once, single-threaded, before
// `main` and before Rust's own start-up; `note_sigpipe` uses nothing that those have to prepare,
// and its type is that of an entry (it ignores the arguments that glibc passes).
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_SIGPIPE: extern "C" fn() = note_sigpipe;

/// Which of `descriptors` are open and would survive an exec.
pub(crate) fn inheritable(descriptors: &[RawFd]) -> Vec<RawFd> {
    let stays = |&fd: &RawFd| {
        // SAFETY: F_GETFD only asks for the flags of the number `fd`, open or not.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        flags >= 0 && flags & libc::FD_CLOEXEC == 0
    };
    descriptors.iter().copied().filter(stays).collect()
}

/// Lets only the standard streams and `pass` survive the next exec of this process.
pub(crate) fn pass_only(pass: &[RawFd]) -> Result<(), Errno> {
    let cloexec = libc::CLOSE_RANGE_CLOEXEC.cast_signed();
    // SAFETY: this closes nothing now; at the exec, when nothing of this program is left that
    // could own a descriptor, the kernel closes them.
    if unsafe { libc::close_range(3, u32::MAX, cloexec) } != 0 {
        return Err(last_errno());
    }
    for &fd in pass {
        // SAFETY: changes nothing but the close-on-exec flag of `fd`.
        unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
    }
    Ok(())
}

/// Closes the inherited descriptors `descriptors`, which no value of this program owns.
pub(crate) fn close_inherited(descriptors: &[RawFd]) {
    for fd in inheritable(descriptors) {
        // SAFETY: descriptors without close-on-exec came from the caller of this program (the
        // standard library and rustix set the flag on everything they open here), so no
        // `OwnedFd` refers to the number.
        unsafe { libc::close(fd) };
    }
}

/// Closes every descriptor of this process but the standard streams and `keep`.
///
/// The caller must not use any other descriptor afterwards and must end with [`exit_now`], so
/// that no destructor closes a number a second time.
pub(crate) fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<u32> = keep.iter().map(|fd| fd.cast_unsigned()).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if first < fd {
            // SAFETY: called only in `init`, which after this uses the kept descriptors alone
            // and leaves by `_exit`; a use of a closed number would answer EBADF or, at worst,
            // close a kept one, which init answers by ending the sandbox.
            unsafe { libc::close_range(first, fd - 1, 0) };
        }
        first = fd.saturating_add(1);
    }
}

/// Whether an inherited descriptor is of a socket that can still get a peer, or send to any address: all but streams that
/// have a peer, and streams that the caller has made listen. Yes when in doubt.
pub(crate) fn is_open_socket(fd: RawFd) -> bool {
    let option = |name| inherited_option(fd, name);
    let Ok(kind) = option(libc::SO_TYPE) else { return false };
    let plain = match option(libc::SO_DOMAIN) {
        Ok(libc::AF_UNIX) => matches!(kind, libc::SOCK_STREAM | libc::SOCK_SEQPACKET),
        Ok(libc::AF_INET | libc::AF_INET6) => {
            kind == libc::SOCK_STREAM && option(libc::SO_PROTOCOL) == Ok(libc::IPPROTO_TCP)
        }
        Ok(libc::AF_VSOCK) => kind == libc::SOCK_STREAM,
        _ => false,
    };
    !plain || (option(libc::SO_ACCEPTCONN) != Ok(1) && !has_peer(fd))
}

fn has_peer(fd: RawFd) -> bool {
    let mut address = [0_u8; 128];
    let mut len = address.len() as libc::socklen_t;
    // SAFETY: `address` and `len` are valid places, and `len` says how much room `address` has.
    unsafe { libc::getpeername(fd, address.as_mut_ptr().cast(), &raw mut len) == 0 }
}

/// An option of level `SOL_SOCKET` of a descriptor that nobody in Rust's sense owns; an error if it is of no socket.
fn inherited_option(fd: RawFd, name: libc::c_int) -> Result<libc::c_int, Errno> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` and `len` are valid places, and `len` says how much room `value` has. The number is looked up in the
    // table of descriptors by the kernel, which refuses one that means nothing.
    let code = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut len)
    };
    if code == 0 { Ok(value) } else { Err(last_errno()) }
}

/// Keeps descriptors from being sent to whoever receives from this unix socket; they could be of anything. The sender is
/// told. Kernels know how since Linux 6.16.
pub(crate) fn receive_no_descriptors(fd: RawFd) {
    /// `asm-generic/socket.h`.
    const SO_PASSRIGHTS: libc::c_int = 83;
    if inherited_option(fd, libc::SO_DOMAIN) != Ok(libc::AF_UNIX) {
        return;
    }
    let off: libc::c_int = 0;
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the call reads one integer, which `off` is.
    unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, SO_PASSRIGHTS, (&raw const off).cast(), len);
    }
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

/// Opens `/dev/null` over the standard streams in `streams`.
pub(crate) fn silence(streams: &[RawFd]) -> Result<(), Errno> {
    use rustix::fs::{Mode, OFlags};
    let null = rustix::fs::openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    for &stream in streams.iter().filter(|fd| (0..3).contains(*fd)) {
        // SAFETY: 0, 1 and 2 are owned by nobody in Rust's sense; the standard library uses them
        // by number and goes on to do so.
        if unsafe { libc::dup2(null.as_raw_fd(), stream) } < 0 {
            return Err(last_errno());
        }
    }
    Ok(())
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
