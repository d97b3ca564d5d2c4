//! The socket that a call is about.

use super::{SocketAsker, class_of};
use flask::Class;
use rustix::io::{Errno, Result};
use std::os::fd::AsFd;
use supervisor::closing::Duplicate;

/// A duplicate of the caller's socket, and what it is.
pub(super) struct Socket {
    pub(super) fd: Duplicate,
    pub(super) class: Class,
    pub(super) family: i32,
}

impl Socket {
    /// Whether a stream has a peer or listens, which the kernel says before what is wrong with an
    /// address (`__inet_stream_connect` of `net/ipv4/af_inet.c`).
    pub(super) fn is_taken(&self) -> bool {
        let listens = || rustix::net::sockopt::socket_acceptconn(&self.fd) == Ok(true);
        self.class == Class::TcpSocket && (rustix::net::getpeername(&self.fd).is_ok() || listens())
    }

    /// The socket behind descriptor `fd` of the caller.
    pub(super) fn of(asker: SocketAsker<'_>, fd: i32) -> Result<Self> {
        let kept = asker.sockets.kept.as_ref().map(|kept| kept.of(*asker, fd)).transpose()?;
        let fd = match kept.flatten() {
            Some(kept) if asker.state.targets.listener.is_valid(asker.caller.call.id) => kept,
            Some(_) => return Err(Errno::SRCH),
            None => asker.duplicate(fd)?,
        };
        let option = |name| supervisor::socket::option(fd.as_fd(), name);
        let family = option(libc::SO_DOMAIN)?;
        let class = class_of(family, option(libc::SO_TYPE)?, option(libc::SO_PROTOCOL)?);
        Ok(Self { fd, class, family })
    }

    /// Nothing of it is to be decided any more.
    pub(super) fn is_settled(&self, asker: SocketAsker<'_>) {
        if let Some(kept) = &asker.sockets.kept {
            kept.forget(&self.fd);
        }
    }
}
