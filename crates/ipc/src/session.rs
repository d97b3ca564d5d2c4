//! The connection of one client, as the service sees it.

use crate::{
    GREETING,
    body::Body,
    deadline::Deadline,
    guard::{Access, Caller, Checks},
    head::{Head, Status, Wanted},
    link::{Link, LinkError, Message, Transport},
    memory::{End, Memory},
    peer::Peer,
    socket::Socket,
    sys::{self, Shared},
};
use flask::Sid;
use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::Arc,
    time::Duration,
};
use zerocopy::FromBytes;

/// How long a client may take to say what it wants, and to make room for a reply.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The connection of one client.
pub struct Session {
    link: Link,
    checks: Checks,
    last: u32,
    /// A reply did not find its way, or nothing more is to be received.
    ended: bool,
    body: Body,
    descriptors: Vec<OwnedFd>,
}

/// Why a session brings no request, or takes no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// Nothing came in time; the session goes on.
    #[error("no request in time")]
    TimedOut,
    /// The client has ended or closed its port.
    #[error("the client is gone")]
    Gone,
    /// Policy does not let the client connect, or there is no room for it.
    #[error("the client was sent away")]
    Refused,
    /// The reply is more than [`MAX_MESSAGE`](crate::MAX_MESSAGE) bytes or
    /// [`MAX_DESCRIPTORS`](crate::MAX_DESCRIPTORS).
    #[error("the reply is too long for a port: put it into a file and pass its descriptor")]
    TooLong,
    /// The client does not keep to the protocol; the session has ended.
    #[error("the client does not keep to the protocol: {0}")]
    Broken(&'static str),
    /// The system refuses.
    #[error("the session failed: {0}")]
    Io(#[from] io::Error),
}

impl From<LinkError> for SessionError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::TimedOut => Self::TimedOut,
            LinkError::Gone => Self::Gone,
            LinkError::Broken(how) => Self::Broken(how),
            LinkError::Io(error) => Self::Io(error),
        }
    }
}

impl Session {
    /// Finds out who connected, whether it may, and what it wants. The socket must pass
    /// credentials.
    pub(crate) fn begin(
        fd: Arc<OwnedFd>,
        access: Access,
        room: bool,
    ) -> Result<Self, SessionError> {
        let peer = Peer::of(fd.as_fd())?;
        let checks = if room { Checks::begin(access, peer) } else { Err(Status::Busy) };
        // Whoever is sent away is told so, whoever it is.
        let speaker = checks.as_ref().ok().map(|checks| Arc::clone(checks.peer()));
        let mut socket = Socket::new(fd, speaker);
        let mut body = Body::default();
        let until = Deadline::after(Some(TIMEOUT));
        let greeting = socket.receive(Wanted::Only(1), &mut body, &mut Vec::new(), &until)?;
        let answer = |socket: &mut Socket, status: Status, descriptors: &[BorrowedFd<'_>]| {
            let word = status as u32;
            socket.send(&Message { seq: 1, word, body: &[], descriptors }, &until)
        };
        let checks = match checks {
            Ok(checks) => checks,
            Err(status) => {
                answer(&mut socket, status, &[])?;
                return Err(SessionError::Refused);
            }
        };
        if body.bytes() != GREETING {
            return Err(SessionError::Broken("it speaks another protocol"));
        }
        let link = if greeting.word == Transport::Memory as u32 {
            let memory = sys::new_memory()?;
            let shared = Shared::map(memory.as_fd())?;
            answer(&mut socket, Status::Done, &[memory.as_fd()])?;
            Link::Memory(Memory::new(shared, socket, End::Server))
        } else {
            answer(&mut socket, Status::Done, &[])?;
            Link::Socket(socket)
        };
        Ok(Self { link, checks, last: 0, ended: false, body, descriptors: Vec::new() })
    }

    /// The next request that policy grants; a denied one is answered as such, and the service never
    /// sees it. Waits as long as it takes for `None`.
    ///
    /// # Errors
    ///
    /// [`SessionError`]. After any but [`SessionError::TimedOut`] the session has ended.
    #[inline]
    pub fn recv(&mut self, timeout: Option<Duration>) -> Result<Request<'_>, SessionError> {
        let until = Deadline::after(timeout);
        loop {
            let head = self.next(&until)?;
            match self.checks.admit(head.word) {
                Ok(caller) => {
                    return Ok(Request { seq: head.seq, caller, answered: false, session: self });
                }
                Err(status) => {
                    self.descriptors.clear();
                    self.answer(head.seq, status, &[], &[])?;
                }
            }
        }
    }

    /// The process at the other end, as far as is known.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        self.checks.peer()
    }

    fn next(&mut self, until: &Deadline) -> Result<Head, LinkError> {
        if self.ended {
            return Err(LinkError::Gone);
        }
        let wanted = Wanted::Not(self.last);
        let received = self.link.receive(wanted, &mut self.body, &mut self.descriptors, until);
        // Whoever broke the protocol once is not listened to again.
        self.ended = !matches!(received, Ok(_) | Err(LinkError::TimedOut));
        let head = received?;
        self.last = head.seq;
        Ok(head)
    }

    fn answer(
        &mut self,
        seq: u32,
        status: Status,
        body: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), SessionError> {
        let message = Message { seq, word: status as u32, body, descriptors };
        if !message.fits() {
            return Err(SessionError::TooLong);
        }
        deliver(&mut self.link, &mut self.ended, &message)
    }
}

/// Sends a reply, or ends the session: a client that makes no room for its reply does not want
/// another.
fn deliver(link: &mut Link, ended: &mut bool, message: &Message<'_>) -> Result<(), SessionError> {
    let sent = link.send(message, &Deadline::after(Some(TIMEOUT)));
    *ended |= sent.is_err();
    Ok(sent?)
}

/// A call that policy has granted. Dropped without a reply, it is answered as unanswered.
pub struct Request<'a> {
    session: &'a mut Session,
    seq: u32,
    caller: Caller,
    answered: bool,
}

impl Request<'_> {
    /// The label of the one in whose name the call is made: decide by this one, and pass it on in
    /// calls of your own ([`Port::call_as`](crate::Port::call_as)).
    #[must_use]
    pub fn client(&self) -> Sid {
        self.caller.client
    }

    /// The label of the process that made the call.
    #[must_use]
    pub fn caller(&self) -> Sid {
        self.caller.peer
    }

    /// The process that made the call.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        self.session.peer()
    }

    /// What is asked: a private copy, which nobody changes any more.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.session.body.bytes()
    }

    /// What is asked, as one value; `None` if it has not the size of one.
    #[must_use]
    pub fn read<T: FromBytes>(&self) -> Option<T> {
        T::read_from_bytes(self.body()).ok()
    }

    /// The descriptors that came with it; none the second time.
    pub fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.session.descriptors)
    }

    /// Whether the client does not wait any more, so that long work can end early. One that gave up
    /// on a socket without closing it is not noticed.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.session.link.given_up(self.seq)
    }

    /// Answers.
    ///
    /// # Errors
    ///
    /// [`SessionError`], mostly because the client is gone.
    #[inline]
    pub fn reply(self, body: &[u8]) -> Result<(), SessionError> {
        self.reply_with(body, &[])
    }

    /// Answers, with descriptors for the client.
    ///
    /// # Errors
    ///
    /// As for [`Request::reply`].
    pub fn reply_with(
        mut self,
        body: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), SessionError> {
        let sent = self.session.answer(self.seq, Status::Done, body, descriptors);
        // Too long a reply has not been sent: the drop says so.
        self.answered = !matches!(sent, Err(SessionError::TooLong));
        sent
    }

    /// Answers with what is asked: for measurements and tests.
    ///
    /// # Errors
    ///
    /// As for [`Request::reply`].
    pub fn echo(mut self) -> Result<(), SessionError> {
        self.answered = true;
        let Session { link, ended, body, .. } = &mut *self.session;
        let (word, body) = (Status::Done as u32, body.bytes());
        deliver(link, ended, &Message { seq: self.seq, word, body, descriptors: &[] })
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.session.descriptors.clear();
        if !self.answered {
            // If the client is gone, the next `recv` says so.
            let _ = self.session.answer(self.seq, Status::Unanswered, &[], &[]);
        }
    }
}
