//! The end that is called: it listens, and gives each client a session of its own.

use crate::{
    guard::Access,
    session::{Request, Session, SessionError},
    sys,
};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    io::{Errno, ioctl_fionbio},
    net::{
        AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
        listen, shutdown, socket_with,
        sockopt::{set_socket_passcred, socket_type},
    },
};
use std::{
    fs, io,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// The most connections at a time, unless told otherwise. Each takes a thread and 256 KiB.
const SESSIONS: usize = 128;

/// How long to wait before accepting again when the system has no descriptors or threads left.
const RESPITE: Duration = Duration::from_millis(50);

/// A service's port, at a path.
pub struct Server {
    listener: OwnedFd,
    /// What is removed with the server; `None` where somebody else keeps the socket.
    path: Option<PathBuf>,
    access: Access,
    max_sessions: usize,
    max_sessions_of_user: usize,
    sessions: Mutex<Vec<(Weak<OwnedFd>, u32)>>,
    stopped: AtomicBool,
    /// Readable from [`Server::stop`] on.
    stop: OwnedFd,
}

impl Server {
    /// Listens at `path`, which must not exist yet, and is removed when the server is dropped.
    ///
    /// # Errors
    ///
    /// Whatever the system says; `AddrInUse` if something is there.
    pub fn bind(path: &Path, access: Access) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new(path)?)?;
        Self::listen(listener, Some(path.to_owned()), access)
    }

    /// Listens on a socket that somebody else has bound and keeps, as a service manager does. It must be a unix socket
    /// of packets (`SOCK_SEQPACKET`).
    ///
    /// # Errors
    ///
    /// Whatever the system says; `InvalidInput` for a socket of another kind.
    pub fn from_bound(listener: OwnedFd, access: Access) -> io::Result<Self> {
        if socket_type(&listener)? != SocketType::SEQPACKET {
            let message = "a port listens on a unix socket of packets (SOCK_SEQPACKET)";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Self::listen(listener, None, access)
    }

    fn listen(listener: OwnedFd, path: Option<PathBuf>, access: Access) -> io::Result<Self> {
        // Inherited by every connection, so that no packet is ever sent without its sender's identity.
        set_socket_passcred(&listener, true)?;
        listen(&listener, BACKLOG)?;
        // Another process that accepts here, too, may be faster.
        ioctl_fionbio(&listener, true)?;
        let (sessions, stopped) = (Mutex::default(), AtomicBool::new(false));
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Self {
            listener,
            path,
            access,
            max_sessions: SESSIONS,
            max_sessions_of_user: usize::MAX,
            sessions,
            stopped,
            stop,
        })
    }

    /// Takes that many connections at a time; whoever else comes is told that the service is busy.
    #[must_use]
    pub fn with_max_sessions(mut self, max_sessions: usize) -> Self {
        self.max_sessions = max_sessions;
        self
    }

    /// Takes that many connections of one user at a time, root's apart, so that no user locks out the others.
    #[must_use]
    pub fn with_max_sessions_of_user(mut self, max_sessions: usize) -> Self {
        self.max_sessions_of_user = max_sessions;
        self
    }

    /// The next client that policy lets connect; others are sent away. For a service with a loop of its own.
    ///
    /// # Errors
    ///
    /// Whatever the system says; `BrokenPipe` after [`Server::stop`].
    pub fn accept(&self) -> io::Result<Session> {
        loop {
            if let Ok(session) = self.admit(self.accept_socket()?) {
                return Ok(session);
            }
        }
    }

    /// Serves every client in a thread of its own until [`Server::stop`]: what one client does, or does not do,
    /// holds up no other. A request that `service` drops is answered as such.
    ///
    /// # Errors
    ///
    /// Whatever the system says about the listening socket.
    ///
    /// # Panics
    ///
    /// When it ends, if `service` has panicked; only that one session ended at once.
    pub fn serve(&self, service: impl Fn(Request<'_>) + Sync) -> io::Result<()> {
        self.serve_sessions(|mut session| {
            while let Ok(request) = session.recv(None) {
                service(request);
            }
        })
    }

    /// As [`Server::serve`], for a service that keeps something for each client: `service` gets the session, and a
    /// thread for as long as it likes.
    ///
    /// # Errors
    ///
    /// As for [`Server::serve`].
    ///
    /// # Panics
    ///
    /// As for [`Server::serve`].
    pub fn serve_sessions(&self, service: impl Fn(Session) + Sync) -> io::Result<()> {
        let service = &service;
        thread::scope(|scope| {
            loop {
                let fd = match self.accept_socket() {
                    Ok(fd) => fd,
                    Err(_) if self.stopped.load(Ordering::Acquire) => return Ok(()),
                    Err(error) => return Err(error),
                };
                if self.sessions().len() > 2 * self.max_sessions {
                    // So many wait to be told that there is no room that this one is not even told.
                    self.forget_ended();
                    thread::sleep(RESPITE);
                    continue;
                }
                let serve = move || {
                    // Whatever ends a session, it ends only this one.
                    if let Ok(session) = self.admit(fd) {
                        service(session);
                    }
                };
                if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                    thread::sleep(RESPITE);
                }
            }
        })
    }

    /// Ends [`Server::serve`] and every session. Requests that are being served are finished first; their
    /// clients see [`CallError::Gone`](crate::CallError::Gone).
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        // It fails only when the count is full, which is as good.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        // None can fail in a way that matters: a socket that is not connected any more has ended, too. What somebody else
        // keeps goes on listening, for the next server.
        if self.path.is_some() {
            let _ = shutdown(&self.listener, Shutdown::Both);
        }
        for session in self.sessions().iter().filter_map(|(session, _)| session.upgrade()) {
            let _ = shutdown(&session, Shutdown::Both);
        }
    }

    fn accept_socket(&self) -> io::Result<OwnedFd> {
        loop {
            let mut fds = [&self.listener, &self.stop].map(|fd| PollFd::new(fd, PollFlags::IN));
            let waited = poll(&mut fds, None);
            if self.stopped.load(Ordering::Acquire) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            match waited.and_then(|_| accept_with(&self.listener, SocketFlags::CLOEXEC)) {
                Err(Errno::INTR | Errno::CONNABORTED | Errno::AGAIN) => {}
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                    thread::sleep(RESPITE);
                }
                Err(error) => return Err(error.into()),
                Ok(fd) => return Ok(fd),
            }
        }
    }

    fn admit(&self, fd: OwnedFd) -> Result<Session, SessionError> {
        let fd = Arc::new(fd);
        let room = self.register(&fd);
        Session::begin(fd, self.access.clone(), room)
    }

    /// Notes a session, so that [`Server::stop`] reaches it; tells whether there is room for it.
    fn register(&self, fd: &Arc<OwnedFd>) -> bool {
        // Whoever cannot be told has no session anyway.
        let uid = sys::peer_credentials(fd.as_fd()).map_or(u32::MAX, |(_, uid)| uid);
        self.forget_ended();
        let mut sessions = self.sessions();
        sessions.push((Arc::downgrade(fd), uid));
        let of_user = sessions.iter().filter(|(_, other)| *other == uid).count();
        // After it is noted: `stop` either finds it or has been seen here.
        sessions.len() <= self.max_sessions
            && (of_user <= self.max_sessions_of_user || uid == 0)
            && !self.stopped.load(Ordering::Acquire)
    }

    fn forget_ended(&self) {
        self.sessions().retain(|(session, _)| session.strong_count() > 0);
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, Vec<(Weak<OwnedFd>, u32)>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if let Some(path) = &self.path {
            // If somebody else has removed it, all the better.
            let _ = fs::remove_file(path);
        }
    }
}
