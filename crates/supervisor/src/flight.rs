//! Ending connections; and descriptors in flight: sent over a unix socket and not received yet.

use crate::sys::{
    closing::{close, close_apart},
    socket::{disconnect, option, set_option},
};
use proc::Proc;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, IoSliceMut, ioctl_fionread},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, Shutdown,
        SocketFlags, SocketType, accept_with, recvmsg, shutdown, sockopt,
    },
};
use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
};

/// `SCM_MAX_FD` of `net/scm.h`: the most that travel with one message.
const MOST: usize = 253;

/// More messages than a socket can hold.
const MOST_TURNS: usize = 1 << 20;

/// More bytes than a socket holds, unless an administrator has let it (`wmem_max`).
const ROOM: usize = 1 << 20;

/// More packets without content than a socket holds, likewise.
const MOST_EMPTY: usize = 1 << 14;

/// How a connection was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By a reset.
    Reset,
    /// Shut down, with what was on its way thrown away.
    ShutDown,
}

/// Ends a connection; a stream of TCP by a reset. `proc` shows the calling process.
pub fn end_connection(proc: &Proc, socket: &OwnedFd) -> rustix::io::Result<Ended> {
    if sockopt::socket_domain(socket)? == AddressFamily::UNIX {
        empty(proc, socket.as_fd())?;
        return Ok(Ended::ShutDown);
    }
    if sockopt::socket_type(socket)? == SocketType::STREAM {
        disconnect(socket.as_fd())?;
        return Ok(Ended::Reset);
    }
    // Wakes whoever waits for a datagram.
    let _ = shutdown(socket, Shutdown::Both);
    disconnect(socket.as_fd())?;
    Ok(Ended::ShutDown)
}

/// Copies of what is in flight to a socket.
#[derive(Debug, Default)]
pub struct Peeked {
    /// The descriptors among it.
    pub descriptors: Vec<OwnedFd>,
    /// The queue was looked at as far as it shows, and no descriptor twice: all of it, if they are
    /// as many as the kernel counts.
    pub complete: bool,
}

impl Drop for Peeked {
    fn drop(&mut self) {
        // Who was to receive them may be gone by now.
        close_apart(std::mem::take(&mut self.descriptors));
    }
}

/// Looks through what a socket will receive, and leaves it there.
pub fn peek(socket: BorrowedFd<'_>) -> Peeked {
    let mut peeked = Peeked::default();
    let Ok(offset) = option(socket, libc::SO_PEEK_OFF) else { return peeked };
    if set_option(socket, libc::SO_PEEK_OFF, 0).is_err() {
        return peeked;
    }
    peeked.complete = receive_all(socket, RecvFlags::PEEK, &mut peeked.descriptors);
    let restored = set_option(socket, libc::SO_PEEK_OFF, offset);
    peeked.complete &= restored.is_ok();
    peeked
}

/// Ends a connection, and throws away what is on its way; of a socket that listens, the connections
/// that wait for it. `proc` shows the calling process.
pub fn empty(proc: &Proc, socket: BorrowedFd<'_>) -> rustix::io::Result<()> {
    if option(socket, libc::SO_ACCEPTCONN)? != 0 {
        return turn_away(socket);
    }
    match shutdown(socket, Shutdown::Both) {
        Ok(()) | Err(Errno::NOTCONN) => {}
        Err(error) => return Err(error),
    }
    let is_stream = sockopt::socket_type(socket)? == SocketType::STREAM;
    if is_stream {
        // Urgent data would be left out, and stay counted.
        set_option(socket, libc::SO_OOBINLINE, 1)?;
    }
    let in_flight = || proc.descriptor("self", socket.as_raw_fd()).ok()?.in_flight();
    for _ in 0..if is_stream { 1 } else { MOST_EMPTY } {
        // Whether each message came whole does not matter here.
        let mut taken = Vec::new();
        receive_all(socket, RecvFlags::empty(), &mut taken);
        close_apart(taken);
        // What looked like the end can have been a packet without content.
        if ioctl_fionread(socket)? == 0 && in_flight() == Some(0) {
            return Ok(());
        }
    }
    Err(Errno::AGAIN)
}

/// Accepts and drops every connection that waits.
fn turn_away(listener: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    while poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&now))? > 0 {
        match accept_with(listener, SocketFlags::CLOEXEC) {
            Ok(connection) => close(connection),
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Receives until nothing is left, or what looks like that: a packet without content. Whether it
/// came to that, and everything came once and whole.
fn receive_all(socket: BorrowedFd<'_>, flags: RecvFlags, into: &mut Vec<OwnedFd>) -> bool {
    let flags = flags | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    // Where there is nothing left, a socket of datagrams says so, also when it is shut down.
    let ends = sockopt::socket_type(socket) != Ok(SocketType::DGRAM);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut bytes = vec![0; ROOM];
    let mut whole = true;
    for _ in 0..MOST_TURNS {
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let pieces = &mut [IoSliceMut::new(&mut bytes)];
        let received = match recvmsg(socket, pieces, &mut control, flags) {
            Ok(received) => received,
            Err(Errno::AGAIN) => return whole,
            Err(Errno::INTR) => continue,
            Err(_) => return false,
        };
        // Each part of a message brings all of its descriptors; the last ones stay away where this
        // process may not have more.
        let cut = ReturnFlags::TRUNC | ReturnFlags::CTRUNC;
        whole &= received.bytes < ROOM && !received.flags.intersects(cut);
        let before = into.len();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                into.extend(descriptors);
            }
        }
        if ends && received.bytes == 0 && into.len() == before {
            return whole;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, sendmsg,
        socketpair,
    };
    use std::{io::IoSlice, os::fd::AsFd};

    fn pair(kind: SocketType) -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap()
    }

    fn send(socket: &OwnedFd, fds: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        }
        let sent = sendmsg(socket, &[IoSlice::new(b"abc")], &mut control, SendFlags::empty());
        assert_eq!(sent, Ok(3));
    }

    #[test]
    fn everything_in_flight_is_seen_and_left_there() {
        for kind in [SocketType::STREAM, SocketType::SEQPACKET, SocketType::DGRAM] {
            let (a, b) = pair(kind);
            let file = tempfile::tempfile().unwrap();
            for fds in [&[file.as_fd()][..], &[], &[file.as_fd(), file.as_fd()]] {
                send(&a, fds);
            }
            for _ in 0..2 {
                let peeked = peek(b.as_fd());
                assert_eq!((peeked.descriptors.len(), peeked.complete), (3, true), "{kind:?}");
            }
            let mut received = Vec::new();
            assert!(receive_all(b.as_fd(), RecvFlags::empty(), &mut received));
            assert_eq!(received.len(), 3);
        }
    }

    #[test]
    fn what_is_seen_twice_is_not_taken_for_all() {
        use rustix::net::sockopt::set_socket_send_buffer_size_force;
        for kind in [SocketType::STREAM, SocketType::SEQPACKET, SocketType::DGRAM] {
            let (a, b) = pair(kind);
            if set_socket_send_buffer_size_force(&a, 8 << 20).is_err() {
                eprintln!("note: not run by root, so no socket takes so much");
                return;
            }
            let own = [a.as_fd()];
            let send = |count: usize, fds: &[BorrowedFd<'_>]| {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
                let bytes = vec![0; count];
                let sent = sendmsg(&a, &[IoSlice::new(&bytes)], &mut control, SendFlags::empty());
                assert_eq!(sent, Ok(count), "{kind:?}");
            };
            if kind == SocketType::STREAM {
                send(ROOM - 1, &[]);
                send(2, &own);
            } else {
                send(ROOM + 1, &own);
            }
            let peeked = peek(b.as_fd());
            assert_eq!((peeked.descriptors.len(), peeked.complete), (2, false), "{kind:?}");
        }
    }

    #[test]
    fn an_emptied_socket_receives_nothing() {
        let proc = Proc::open().unwrap();
        for kind in [SocketType::STREAM, SocketType::SEQPACKET, SocketType::DGRAM] {
            let (a, b) = pair(kind);
            let nothing = || sendmsg(&a, &[], &mut Default::default(), SendFlags::empty());
            nothing().unwrap();
            send(&a, &[a.as_fd()]);
            nothing().unwrap();
            nothing().unwrap();
            send(&a, &[]);
            empty(&proc, b.as_fd()).unwrap();
            let mut received = Vec::new();
            assert!(receive_all(b.as_fd(), RecvFlags::empty(), &mut received));
            assert!(received.is_empty(), "{kind:?}");
            assert_eq!(ioctl_fionread(&b), Ok(0), "{kind:?}");
        }
    }
}
