//! A connection of two processes, over either transport: messages there, messages back, and nothing
//! about policy.

use crate::{
    MAX_DESCRIPTORS, MAX_MESSAGE,
    body::Body,
    deadline::Deadline,
    head::{Head, Wanted},
    memory::Memory,
    socket::Socket,
};
use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

/// How messages travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Shared memory, and a futex to wake up: for processes that call often.
    #[default]
    Memory,
    /// A unix socket of packets: less memory, and the kernel tells the sender of every call.
    Socket,
}

/// Why a message did not travel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("no answer in time")]
    TimedOut,
    #[error("the other side is gone")]
    Gone,
    #[error("the other side does not keep to the protocol: {0}")]
    Broken(&'static str),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<rustix::io::Errno> for LinkError {
    fn from(error: rustix::io::Errno) -> Self {
        match error {
            rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET => Self::Gone,
            rustix::io::Errno::AGAIN => Self::TimedOut,
            error => Self::Io(error.into()),
        }
    }
}

/// What a message consists of, whole or in part.
pub(crate) struct Message<'a> {
    pub(crate) seq: u32,
    pub(crate) word: u32,
    pub(crate) body: &'a [u8],
    pub(crate) descriptors: &'a [BorrowedFd<'a>],
}

impl Message<'_> {
    pub(crate) fn head(&self) -> Head {
        Head {
            seq: self.seq,
            word: self.word,
            len: self.body.len() as u32,
            descriptors: self.descriptors.len() as u32,
        }
    }

    /// Whether it is within the bounds of both transports.
    pub(crate) fn fits(&self) -> bool {
        self.body.len() <= MAX_MESSAGE && self.descriptors.len() <= MAX_DESCRIPTORS
    }
}

/// One end of a connection.
pub(crate) enum Link {
    Socket(Socket),
    Memory(Memory),
}

impl Link {
    /// Sends a message that [fits](Message::fits). Waits where the other side does not keep up.
    pub(crate) fn send(
        &mut self,
        message: &Message<'_>,
        until: &Deadline,
    ) -> Result<(), LinkError> {
        match self {
            Self::Socket(socket) => socket.send(message, until),
            Self::Memory(memory) => memory.send(message),
        }
    }

    /// Receives the next wanted message: its bytes into `body`, its descriptors into `descriptors`.
    pub(crate) fn receive(
        &mut self,
        wanted: Wanted,
        body: &mut Body,
        descriptors: &mut Vec<OwnedFd>,
        until: &Deadline,
    ) -> Result<Head, LinkError> {
        match self {
            Self::Socket(socket) => socket.receive(wanted, body, descriptors, until),
            Self::Memory(memory) => memory.receive(wanted, body, descriptors, until),
        }
    }

    /// The socket that the processes met at.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.as_fd(),
            Self::Memory(memory) => memory.socket().as_fd(),
        }
    }

    /// Whether the other side has given up the call `seq`, or is gone. May miss it.
    pub(crate) fn given_up(&self, seq: u32) -> bool {
        match self {
            Self::Socket(socket) => socket.is_gone(),
            Self::Memory(memory) => memory.given_up(seq),
        }
    }
}
