//! Closing a program's sockets, of which the monitor may have the last descriptor by then: whoever
//! closes that waits as long as the program has said (`SO_LINGER` of socket(7)), up to months.
#![allow(unsafe_code)]

use proc::Proc;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, Result},
    net::{
        AddressFamily,
        sockopt::{set_socket_linger, socket_domain, socket_linger},
    },
};
use std::{
    mem::ManuallyDrop,
    ops::Deref,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        mpsc::{Sender, channel},
    },
    thread::Builder,
};

/// Shows what is on its way to sockets of this process. What lies at `/proc` may be the sandbox's.
static OWN_PROC: OnceLock<Proc> = OnceLock::new();

/// Has [`close`] see by `proc`, which shows this process, what is on its way to a socket. Without,
/// whatever is on its way is taken for something that may linger.
pub fn see_by(proc: OwnedFd) {
    let _ = OWN_PROC.set(Proc::new(proc));
}

/// A duplicate of a program's descriptor. Whoever drops it does not wait for what lingers.
#[derive(Debug)]
pub struct Duplicate(ManuallyDrop<OwnedFd>);

impl From<OwnedFd> for Duplicate {
    fn from(fd: OwnedFd) -> Self {
        Self(ManuallyDrop::new(fd))
    }
}

impl Deref for Duplicate {
    type Target = OwnedFd;

    fn deref(&self) -> &OwnedFd {
        &self.0
    }
}

impl AsFd for Duplicate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Duplicate {
    fn drop(&mut self) {
        // SAFETY: a value is dropped once, and nothing looks at its field afterwards.
        close(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

/// Closes a descriptor, and does not wait for what lingers: a thread that ends has the last one
/// then, and the kernel has nobody wait who ends (`inet_release` of `net/ipv4/af_inet.c`). What is
/// unsent is sent all the same.
pub fn close(fd: OwnedFd) {
    let _ending = may_wait(&fd).then(|| end_with(&fd));
    drop(fd);
}

/// Closes descriptors in a thread that nobody waits for: files and devices may have whoever closes
/// them wait, too.
pub fn close_apart(fds: Vec<OwnedFd>) {
    if fds.is_empty() {
        return;
    }
    let shared = Arc::new(Mutex::new(fds));
    let of_thread = Arc::clone(&shared);
    let close_all = move |fds: &Mutex<Vec<OwnedFd>>| {
        let fds = std::mem::take(&mut *fds.lock().unwrap_or_else(PoisonError::into_inner));
        fds.into_iter().for_each(close);
    };
    if thread().spawn(move || close_all(&of_thread)).is_err() {
        close_all(&shared);
    }
}

/// Whether the last who closes `fd` may wait: it lingers, or is a local socket with descriptors on
/// their way to it, of which some may linger.
fn may_wait(fd: &OwnedFd) -> bool {
    match socket_linger(fd) {
        Err(_) => false,
        Ok(Some(time)) if !time.is_zero() => true,
        Ok(_) => socket_domain(fd) == Ok(AddressFamily::UNIX) && is_given(fd),
    }
}

/// Whether descriptors are on their way to a local socket, as far as the kernel tells.
fn is_given(socket: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut waited = [PollFd::new(socket, PollFlags::IN)];
    let polled = poll(&mut waited, Some(&now));
    if polled.is_ok() && !waited[0].revents().contains(PollFlags::IN) {
        return false;
    }
    let told = OWN_PROC.get().and_then(|proc| proc.descriptor("self", socket.as_raw_fd()).ok());
    told.and_then(|told| told.in_flight()) != Some(0)
}

/// A thread that has `fd`, too, in a table of its own, and ends when what is returned is dropped;
/// `None` if there can be none: then `fd` lingers no more.
fn end_with(fd: &OwnedFd) -> Option<Sender<()>> {
    let (ready, is_ready) = channel();
    let (ending, ends) = channel::<()>();
    let last = fd.as_raw_fd();
    let wait = move || {
        if own_table(last).is_ok() {
            let _ = ready.send(());
            // Others must not seem to be held by the monitor.
            close_below(last);
            let _ = ends.recv();
        }
    };
    let begun = thread().spawn(wait);
    if begun.is_err() || is_ready.recv().is_err() {
        let _ = set_socket_linger(fd, None);
        return None;
    }
    Some(ending)
}

fn thread() -> Builder {
    Builder::new().name("close".into()).stack_size(64 << 10)
}

/// Gives the calling thread a table of descriptors of its own, with those up to `last`.
fn own_table(last: i32) -> Result<()> {
    close_range(last.cast_unsigned() + 1, u32::MAX, libc::CLOSE_RANGE_UNSHARE)
}

/// Closes the descriptors before `last` in the calling thread's own table.
fn close_below(last: i32) {
    if let Some(before) = last.cast_unsigned().checked_sub(1) {
        let _ = close_range(0, before, 0);
    }
}

/// For threads that use no descriptor any more, and have a table of their own, or get one by this.
fn close_range(first: u32, last: u32, flags: u32) -> Result<()> {
    // SAFETY: the call takes integers. It closes descriptors in a table that is the calling
    // thread's alone, through which nothing is used: the thread only ends.
    let code = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if code == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::{
        fs::{Mode, OFlags},
        net::{
            SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg,
            socket_with, socketpair,
        },
    };
    use std::{
        io::{ErrorKind, IoSlice, Read as _, Write as _},
        mem::MaybeUninit,
        net::{TcpListener, TcpStream},
        time::{Duration, Instant},
    };

    /// A stream that lingers, what was written to it, and its peer, which takes nothing.
    fn lingering() -> (OwnedFd, usize, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut written = 0;
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(300) {
            match stream.write(&[0; 65536]) {
                Ok(count) => written += count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        stream.set_nonblocking(false).unwrap();
        let stream = OwnedFd::from(stream);
        set_socket_linger(&stream, Some(Duration::from_secs(20))).unwrap();
        (stream, written, peer)
    }

    #[test]
    fn nobody_waits_for_what_lingers_and_all_of_it_is_sent() {
        let (stream, written, mut peer) = lingering();
        let begin = Instant::now();
        drop(Duplicate::from(stream));
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), written);
    }

    #[test]
    fn a_socket_that_only_data_is_on_its_way_to_is_closed_without_a_thread() {
        let proc = rustix::fs::open("/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        see_by(proc.unwrap());
        let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
        let unconnected = socket_with(AddressFamily::UNIX, kind, flags, None).unwrap();
        assert!(!may_wait(&unconnected));
        let (from, to) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        assert!(!may_wait(&to));
        rustix::io::write(&from, b"data").unwrap();
        assert!(!may_wait(&to));
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [to.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(&from, &[IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
        assert!(may_wait(&to));
    }

    #[test]
    fn nobody_waits_for_what_lingers_on_its_way_to_a_socket() {
        let (stream, _, _peer) = lingering();
        let flags = SocketFlags::CLOEXEC;
        let (from, to) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [stream.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(&from, &[IoSlice::new(b"")], &mut control, SendFlags::empty()).unwrap();
        drop((stream, from));
        let begin = Instant::now();
        drop(Duplicate::from(to));
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    }

    #[test]
    fn what_the_program_still_has_lingers_as_before() {
        let (stream, _, _peer) = lingering();
        drop(Duplicate::from(stream.try_clone().unwrap()));
        assert_eq!(socket_linger(&stream), Ok(Some(Duration::from_secs(20))));
        set_socket_linger(&stream, None).unwrap();
    }
}
