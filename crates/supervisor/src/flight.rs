//! Ending connections; and descriptors in flight: sent over a unix socket and not received yet.

use crate::sys::socket::{disconnect, option, set_option};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, IoSliceMut},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, Shutdown, SocketFlags,
        SocketType, accept_with, recvmsg, shutdown, sockopt,
    },
};
use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// `SCM_MAX_FD` of `net/scm.h`: the most that travel with one message.
const MOST: usize = 253;

/// How a connection was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By a reset.
    Reset,
    /// Shut down, with what was on its way thrown away.
    ShutDown,
}

/// Ends a connection; a stream of TCP by a reset.
pub fn end_connection(socket: &OwnedFd) -> rustix::io::Result<Ended> {
    if sockopt::socket_domain(socket)? == AddressFamily::UNIX {
        empty(socket.as_fd())?;
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
    /// The whole queue was looked at.
    pub complete: bool,
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
/// that wait for it.
pub fn empty(socket: BorrowedFd<'_>) -> rustix::io::Result<()> {
    if option(socket, libc::SO_ACCEPTCONN)? != 0 {
        return turn_away(socket);
    }
    match shutdown(socket, Shutdown::Both) {
        Ok(()) | Err(Errno::NOTCONN) => {}
        Err(error) => return Err(error),
    }
    let emptied = receive_all(socket, RecvFlags::empty(), &mut Vec::new());
    if emptied { Ok(()) } else { Err(Errno::AGAIN) }
}

/// Accepts and drops every connection that waits.
fn turn_away(listener: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    while poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&now))? > 0 {
        match accept_with(listener, SocketFlags::CLOEXEC) {
            Ok(_) | Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Receives until nothing is left; whether that came to pass.
fn receive_all(socket: BorrowedFd<'_>, flags: RecvFlags, into: &mut Vec<OwnedFd>) -> bool {
    /// More messages than a socket can hold.
    const MOST_TURNS: usize = 1 << 20;
    let flags = flags | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut bytes = vec![0; 1 << 16];
    for _ in 0..MOST_TURNS {
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let pieces = &mut [IoSliceMut::new(&mut bytes)];
        let received = match recvmsg(socket, pieces, &mut control, flags) {
            Ok(received) => received,
            Err(Errno::AGAIN) => return true,
            Err(Errno::INTR) => continue,
            Err(_) => return false,
        };
        let before = into.len();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                into.extend(descriptors);
            }
        }
        if received.bytes == 0 && into.len() == before {
            return true;
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
    fn an_emptied_socket_receives_nothing() {
        let (a, b) = pair(SocketType::STREAM);
        send(&a, &[a.as_fd()]);
        empty(b.as_fd()).unwrap();
        let mut received = Vec::new();
        assert!(receive_all(b.as_fd(), RecvFlags::empty(), &mut received));
        assert!(received.is_empty());
    }
}
