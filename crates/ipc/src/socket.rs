//! Messages as packets of a unix socket: one packet each, descriptors and the sender's identity
//! beside it.

use crate::{
    MAX_DESCRIPTORS, MAX_MESSAGE,
    body::Body,
    deadline::Deadline,
    head::{Head, Wanted},
    link::{LinkError, Message},
    peer::Peer,
    sys::{self, Packet},
};
use rustix::{
    cmsg_space,
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg,
        sockopt::{Timeout, set_socket_timeout},
    },
};
use std::{
    io::{self, IoSlice},
    mem::{self, MaybeUninit},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    time::Duration,
};
use zerocopy::IntoBytes as _;

/// One end of a connection.
pub(crate) struct Socket {
    fd: Arc<OwnedFd>,
    /// The only process that may send; `None` to take what comes.
    sender: Option<Arc<Peer>>,
    /// What the kernel was told last, to tell it again only when it changes.
    timeouts: [Option<Duration>; 2],
}

impl Socket {
    /// Takes packets from `sender` only, if it is given; then the socket must pass credentials.
    pub(crate) fn new(fd: Arc<OwnedFd>, sender: Option<Arc<Peer>>) -> Self {
        Self { fd, sender, timeouts: [None; 2] }
    }

    pub(crate) fn send(
        &mut self,
        message: &Message<'_>,
        until: &Deadline,
    ) -> Result<(), LinkError> {
        loop {
            self.set_timeout(Timeout::Send, until)?;
            match send(self.fd.as_fd(), message, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }

    /// Sends without waiting; a message that does not find room is lost.
    pub(crate) fn try_send(&self, message: &Message<'_>) -> Result<(), LinkError> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        Ok(send(self.fd.as_fd(), message, flags)?)
    }

    pub(crate) fn receive(
        &mut self,
        wanted: Wanted,
        body: &mut Body,
        descriptors: &mut Vec<OwnedFd>,
        until: &Deadline,
    ) -> Result<Head, LinkError> {
        loop {
            self.set_timeout(Timeout::Recv, until)?;
            match self.packet(body, 0) {
                Ok((head, packet)) if wanted.takes(head.seq) => {
                    *descriptors = packet.descriptors;
                    return Ok(head);
                }
                Ok(_) => {}
                Err(LinkError::Io(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next packet if one lies there, `TimedOut` if none does.
    pub(crate) fn try_receive(&self, body: &mut Body) -> Result<(Head, Packet), LinkError> {
        self.packet(body, libc::MSG_DONTWAIT)
    }

    fn packet(&self, body: &mut Body, flags: i32) -> Result<(Head, Packet), LinkError> {
        let mut head = Head::default();
        let room = body.room(MAX_MESSAGE);
        let packet =
            sys::receive(self.fd.as_fd(), head.as_mut_bytes(), room, flags).map_err(|error| {
                match error.raw_os_error() {
                    Some(libc::EAGAIN) => LinkError::TimedOut,
                    Some(libc::ECONNRESET) => LinkError::Gone,
                    _ => LinkError::Io(error),
                }
            })?;
        if packet.len == 0 {
            return Err(LinkError::Gone);
        }
        if let Some(sender) = &self.sender {
            // It lives after the packet was received: nobody else had its number when the packet
            // was sent.
            if packet.sender != Some(sender.pid()) || !sender.is_alive() {
                return Err(LinkError::Broken(
                    "a process other than the one that connected speaks",
                ));
            }
        }
        let whole = packet.len.checked_sub(mem::size_of::<Head>()) == Some(head.len as usize);
        // There can be room for a few more than a message may have.
        let descriptors = packet.descriptors.len();
        let bounded = descriptors == head.descriptors as usize && descriptors <= MAX_DESCRIPTORS;
        if packet.truncated || !whole || !bounded {
            return Err(LinkError::Broken("a packet is not what its head says"));
        }
        body.room(head.len as usize);
        Ok((head, packet))
    }

    /// Waits until a packet lies there or the other side is gone.
    pub(crate) fn wait(&self, until: &Deadline) -> Result<(), LinkError> {
        match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], until.timespec().as_ref()) {
            Ok(0) => Err(LinkError::TimedOut),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the other side has closed its end.
    pub(crate) fn is_gone(&self) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::empty())];
        // What cannot be asked counts as gone: nothing is granted to it.
        poll(&mut fds, Some(&Timespec::default())).is_err() || !fds[0].revents().is_empty()
    }

    fn set_timeout(&mut self, which: Timeout, until: &Deadline) -> Result<(), LinkError> {
        let left = until.left();
        if left.is_some_and(|left| left.is_zero()) {
            return Err(LinkError::TimedOut);
        }
        // To the millisecond, so that the same timeout on every call is set once; never less than
        // what is left.
        let left = left.map(|left| Duration::from_millis(left.as_millis() as u64 + 1));
        let known = &mut self.timeouts[usize::from(matches!(which, Timeout::Send))];
        if *known != left {
            set_socket_timeout(&self.fd, which, left)?;
            *known = left;
        }
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn send(fd: BorrowedFd<'_>, message: &Message<'_>, flags: SendFlags) -> Result<(), Errno> {
    let head = message.head();
    let parts = [IoSlice::new(head.as_bytes()), IoSlice::new(message.body)];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !message.descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(message.descriptors));
    }
    // A packet is sent whole or not at all.
    match sendmsg(fd, &parts, &mut ancillary, flags) {
        // In a sandbox that may send to any address, sendmsg is decided, and not made for a port:
        // the packet would come from the monitor.
        Err(Errno::OPNOTSUPP) if message.descriptors.is_empty() => {
            rustix::net::send(fd, &[head.as_bytes(), message.body].concat(), flags).map(drop)
        }
        sent => sent.map(drop),
    }
}
