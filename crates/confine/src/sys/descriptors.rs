//! Descriptors by their numbers: those that Dewar's caller left open, and what becomes of them.

use super::last_errno;
use rustix::{fs::CWD, io::Errno};
use std::{
    os::fd::{AsRawFd, OwnedFd, RawFd},
    sync::atomic::{AtomicBool, Ordering},
};

/// Whether the caller of Dewar had closed standard input, output or error output.
static WAS_CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Which standard streams were closed when this process was started (Rust opens `/dev/null` there
/// before `main`).
pub(crate) fn closed_streams() -> Vec<RawFd> {
    (0..)
        .zip(&WAS_CLOSED)
        .filter(|(_, was)| was.load(Ordering::Relaxed))
        .map(|(fd, _)| fd)
        .collect()
}

extern "C" fn note_closed() {
    for (fd, was) in (0..).zip(&WAS_CLOSED) {
        // SAFETY: F_GETFD only asks for the flags of the number `fd`, open or not.
        was.store(unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0, Ordering::Relaxed);
    }
}

// SAFETY: the C start-up code calls each function of this section once, single-threaded, before
// `main` and before Rust's own start-up; `note_closed` uses nothing that those have to prepare, and
// its type is that of an entry (it ignores the arguments that glibc passes).
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_CLOSED: extern "C" fn() = note_closed;

/// Which of `descriptors` are open and would survive an exec.
pub(crate) fn inheritable(descriptors: &[RawFd]) -> Vec<RawFd> {
    let stays = |&fd: &RawFd| {
        // SAFETY: F_GETFD only asks for the flags of the number `fd`, open or not.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        flags >= 0 && flags & libc::FD_CLOEXEC == 0
    };
    descriptors.iter().copied().filter(stays).collect()
}

/// Lets only the standard streams, without `closed`, and `pass` survive this process's next exec.
pub(crate) fn pass_only(pass: &[RawFd], closed: &[RawFd]) -> Result<(), Errno> {
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
    for &fd in closed {
        // SAFETY: the same.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

/// A duplicate of descriptor `fd`, whoever has that.
pub(crate) fn duplicate(fd: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: F_DUPFD_CLOEXEC takes integers, and closes nothing.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
    super::owned(copy.into())
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
/// The caller must not use any other descriptor afterwards and must end with `exit_now`, so
/// that no destructor closes a number a second time.
pub(crate) fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<u32> = keep.iter().map(|fd| fd.cast_unsigned()).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if first < fd {
            // SAFETY: called only in init and the subreaper, which after this use the kept
            // descriptors alone and leave by `_exit`; a use of a closed number would answer EBADF
            // or, at worst, close a kept one, which they answer by ending the sandbox.
            unsafe { libc::close_range(first, fd - 1, 0) };
        }
        first = fd.saturating_add(1);
    }
}

/// Whether an inherited descriptor is of a socket that can still get a peer, or send to any
/// address: all but streams that have a peer, and streams that the caller has made listen. Yes when
/// in doubt.
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

/// An option of level `SOL_SOCKET` of a descriptor that nobody in Rust's sense owns; an error if it
/// is of no socket.
fn inherited_option(fd: RawFd, name: libc::c_int) -> Result<libc::c_int, Errno> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` and `len` are valid places, and `len` says how much room `value` has. The
    // number is looked up in the table of descriptors by the kernel, which refuses one that means
    // nothing.
    let code = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut len)
    };
    if code == 0 { Ok(value) } else { Err(last_errno()) }
}

/// Keeps descriptors from being sent to whoever receives from this unix socket; they could be of
/// anything. The sender is told. Kernels know how since Linux 6.16. Whether it is a unix socket.
pub(crate) fn receive_no_descriptors(fd: RawFd) -> bool {
    /// `asm-generic/socket.h`.
    const SO_PASSRIGHTS: libc::c_int = 83;
    if inherited_option(fd, libc::SO_DOMAIN) != Ok(libc::AF_UNIX) {
        return false;
    }
    let off: libc::c_int = 0;
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the call reads one integer, which `off` is.
    unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, SO_PASSRIGHTS, (&raw const off).cast(), len);
    }
    true
}

/// Opens `/dev/null` over the standard streams in `streams`. In a view that covers it, they become
/// what can be neither read nor written: the numbers stay taken.
pub(crate) fn silence(streams: &[RawFd]) -> Result<(), Errno> {
    use rustix::fs::{Mode, OFlags};
    let open = |path, flags| rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty());
    let null = open("/dev/null", OFlags::RDWR).or_else(|_| open("/", OFlags::PATH))?;
    for &stream in streams.iter().filter(|fd| (0..3).contains(*fd)) {
        // SAFETY: 0, 1 and 2 are owned by nobody in Rust's sense; the standard library uses them
        // by number and goes on to do so.
        if unsafe { libc::dup2(null.as_raw_fd(), stream) } < 0 {
            return Err(last_errno());
        }
    }
    Ok(())
}
