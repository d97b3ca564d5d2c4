//! The calling end.

use crate::{
    GREETING,
    body::Body,
    deadline::Deadline,
    head::{Status, Wanted},
    link::{Link, LinkError, Message, Transport},
    memory::{End, Memory},
    peer::Peer,
    socket::Socket,
    sys::Shared,
};
use flask::Sid;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};
use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
    sync::Arc,
    time::Duration,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// How long a connection, and a call that is not told otherwise, may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to a service. One call at a time; a thread that wants to call beside another has a
/// port of its own.
pub struct Port {
    link: Link,
    seq: u32,
    timeout: Option<Duration>,
    body: Body,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Nothing listens there, or the system refuses.
    #[error("cannot connect: {0}")]
    Io(#[from] io::Error),
    /// Policy does not grant `port { connect }`, or does not know this process.
    #[error("policy does not let this process connect")]
    Denied,
    /// The service has as many connections as it takes.
    #[error("the service has too many connections; try again later")]
    Busy,
    /// What answers is no port, or not in time.
    #[error("what listens there does not answer as a port does")]
    NoPort,
}

/// Why a call brought no reply. Except after [`CallError::Gone`] and [`CallError::Broken`], the
/// port can be used again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Policy does not grant `port { connect }` any more.
    #[error("policy does not grant this call")]
    Denied,
    /// Policy does not let this process call in that name, or not the one named connect.
    #[error("policy does not grant this call in another's name")]
    DeniedName,
    /// No reply in time. The service may still act on it; its reply will be left aside.
    #[error("no reply in time")]
    TimedOut,
    /// The service has ended, or closed the connection. Connect again.
    #[error("the service is gone")]
    Gone,
    /// The service took the request and did not reply.
    #[error("the service did not reply to this request")]
    Unanswered,
    /// More than [`MAX_MESSAGE`](crate::MAX_MESSAGE) bytes or
    /// [`MAX_DESCRIPTORS`](crate::MAX_DESCRIPTORS).
    #[error("the message is too long for a port: put it into a file and pass its descriptor")]
    TooLong,
    /// The reply is not of the type that was asked for.
    #[error("the reply is not of the expected type")]
    WrongType,
    /// The service does not keep to the protocol. Connect again.
    #[error("the service does not keep to the protocol: {0}")]
    Broken(&'static str),
    /// The system refuses.
    #[error("the call failed: {0}")]
    Io(#[source] io::Error),
}

impl From<LinkError> for CallError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::TimedOut => Self::TimedOut,
            LinkError::Gone => Self::Gone,
            LinkError::Broken(how) => Self::Broken(how),
            LinkError::Io(error) => Self::Io(error),
        }
    }
}

/// One call, with everything that can be said about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// What is asked.
    pub body: &'a [u8],
    /// Descriptors that the service receives.
    pub descriptors: &'a [BorrowedFd<'a>],
    /// In whose name; its own for `None`.
    pub effective: Option<Sid>,
}

/// What the service answered.
#[derive(Debug)]
pub struct Reply<'a> {
    /// The bytes.
    pub body: &'a [u8],
    /// The descriptors; they are closed when dropped.
    pub descriptors: Vec<OwnedFd>,
}

impl Port {
    /// Connects to the service that listens at `path`. Takes five seconds at most.
    ///
    /// # Errors
    ///
    /// [`ConnectError`].
    pub fn connect(path: &Path, transport: Transport) -> Result<Self, ConnectError> {
        Self::connect_within(path, transport, TIMEOUT)
    }

    /// As [`Port::connect`], within `timeout`.
    ///
    /// # Errors
    ///
    /// [`ConnectError`].
    pub fn connect_within(
        path: &Path,
        transport: Transport,
        timeout: Duration,
    ) -> Result<Self, ConnectError> {
        let fd =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(io::Error::from)?;
        set_socket_timeout(&fd, Timeout::Send, Some(timeout)).map_err(io::Error::from)?;
        let address = SocketAddrUnix::new(path).map_err(io::Error::from)?;
        connect(&fd, &address).map_err(io::Error::from)?;
        let (mut socket, mut body) = (Socket::new(Arc::new(fd), None), Body::default());
        let until = Deadline::after(Some(timeout));
        let memory =
            greet(&mut socket, transport, &mut body, &until).map_err(|error| match error {
                Refused::Status(Status::Denied) => ConnectError::Denied,
                Refused::Status(Status::Busy) => ConnectError::Busy,
                Refused::Link(LinkError::Io(error)) => ConnectError::Io(error),
                Refused::Status(_) | Refused::Link(_) => ConnectError::NoPort,
            })?;
        let link = match memory {
            Some(memory) => {
                let shared = Shared::map(memory.as_fd()).map_err(|_| ConnectError::NoPort)?;
                Link::Memory(Memory::new(shared, socket, End::Client))
            }
            None => Link::Socket(socket),
        };
        Ok(Self { link, seq: 0, timeout: Some(TIMEOUT), body })
    }

    /// The process that listens there, or did when it began to.
    ///
    /// # Errors
    ///
    /// As for [`Peer::of`].
    pub fn peer(&self) -> io::Result<Peer> {
        Peer::of(self.link.socket())
    }

    /// Lets each later call take that long, or as long as it takes for `None`. Five seconds at
    /// first.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// Calls, and returns the reply's bytes.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    #[inline]
    pub fn call(&mut self, body: &[u8]) -> Result<&[u8], CallError> {
        self.send(Call { body, ..Call::default() }).map(|reply| reply.body)
    }

    /// Calls in the name of `effective`, if policy grants `port { specify_client }` on it to this
    /// process. A service that works for a client passes that client's SID on like this.
    ///
    /// # Errors
    ///
    /// [`CallError`], here also [`CallError::DeniedName`].
    #[inline]
    pub fn call_as(&mut self, effective: Sid, body: &[u8]) -> Result<&[u8], CallError> {
        let effective = Some(effective);
        self.send(Call { body, effective, ..Call::default() }).map(|reply| reply.body)
    }

    /// Calls with one value and returns another.
    ///
    /// # Errors
    ///
    /// [`CallError`], here also [`CallError::WrongType`].
    pub fn ask<Q, R>(&mut self, question: &Q) -> Result<R, CallError>
    where
        Q: IntoBytes + Immutable,
        R: FromBytes,
    {
        let reply = self.call(question.as_bytes())?;
        R::read_from_bytes(reply).map_err(|_| CallError::WrongType)
    }

    /// Makes any call.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub fn send(&mut self, call: Call<'_>) -> Result<Reply<'_>, CallError> {
        // 0 is no number.
        self.seq = self.seq.checked_add(1).unwrap_or(1);
        let message = Message {
            seq: self.seq,
            word: call.effective.map_or(0, Sid::get),
            body: call.body,
            descriptors: call.descriptors,
        };
        if !message.fits() {
            return Err(CallError::TooLong);
        }
        let until = Deadline::after(self.timeout);
        self.link.send(&message, &until)?;
        let (wanted, mut descriptors) = (Wanted::Only(self.seq), Vec::new());
        let head = self.link.receive(wanted, &mut self.body, &mut descriptors, &until)?;
        match Status::from_number(head.word) {
            Some(Status::Done) => Ok(Reply { body: self.body.bytes(), descriptors }),
            Some(Status::Denied) => Err(CallError::Denied),
            Some(Status::DeniedName) => Err(CallError::DeniedName),
            Some(Status::Unanswered) => Err(CallError::Unanswered),
            Some(Status::Busy) | None => Err(CallError::Broken("a reply has an unknown status")),
        }
    }
}

/// Why a server does not take us.
enum Refused {
    Status(Status),
    Link(LinkError),
}

impl From<LinkError> for Refused {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

/// Says what we want; returns the memory if we want some.
fn greet(
    socket: &mut Socket,
    transport: Transport,
    body: &mut Body,
    until: &Deadline,
) -> Result<Option<OwnedFd>, Refused> {
    let greeting = Message { seq: 1, word: transport as u32, body: GREETING, descriptors: &[] };
    // Who refuses us may have closed already; its reason still lies there.
    let sent = socket.send(&greeting, until);
    let mut descriptors = Vec::new();
    let head = match socket.receive(Wanted::Only(1), body, &mut descriptors, until) {
        Ok(head) => head,
        Err(error) => return Err(sent.err().unwrap_or(error).into()),
    };
    match (Status::from_number(head.word), transport, descriptors.pop()) {
        (Some(Status::Done), Transport::Memory, Some(memory)) => Ok(Some(memory)),
        (Some(Status::Done), Transport::Socket, None) => Ok(None),
        (Some(Status::Done) | None, _, _) => Err(LinkError::Broken("an odd greeting").into()),
        (Some(status), _, _) => Err(Refused::Status(status)),
    }
}
