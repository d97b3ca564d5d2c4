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
    collections::VecDeque,
    fs, io,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// The most connections at a time, unless told otherwise. Each takes a thread and 256 KiB.
const SESSIONS: usize = 128;

/// Connections of one user that are told at the same time that there is no room.
const MOST_REFUSED: usize = 64;

/// So long does a client ask nothing that others wait for the thread of.
const SILENCE: Duration = Duration::from_secs(1);

/// How long to wait before accepting again when the system has no descriptors left.
const RESPITE: Duration = Duration::from_millis(50);

/// A service's port, at a path.
pub struct Server {
    listener: OwnedFd,
    /// What is removed with the server; `None` where somebody else keeps the socket.
    path: Option<PathBuf>,
    access: Access,
    max_sessions: usize,
    max_sessions_of_user: usize,
    sessions: Mutex<Vec<Connection>>,
    waiting: Waiting,
    stopped: AtomicBool,
    /// Readable from [`Server::stop`] on.
    stop: OwnedFd,
}

/// Connections for which no thread can be made, each with whether there is room for it.
#[derive(Default)]
struct Waiting {
    all: Mutex<VecDeque<(Arc<OwnedFd>, bool)>>,
    changed: Condvar,
    /// Somebody stands in.
    is_served: AtomicBool,
}

/// A connection that has not ended.
struct Connection {
    socket: Weak<OwnedFd>,
    uid: u32,
    /// It has a session. The others are being told that there is no room.
    has_room: bool,
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

    /// Listens on a socket that somebody else has bound and keeps, as a service manager does. It
    /// must be a unix socket of packets (`SOCK_SEQPACKET`).
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
        // Inherited by every connection, so that no packet is ever sent without its sender's
        // identity.
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
            waiting: Waiting::default(),
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

    /// Takes that many connections of one user at a time, so that no user locks out the others.
    /// Root is not bounded, and of all connections an eighth is for root alone.
    #[must_use]
    pub fn with_max_sessions_of_user(mut self, max_sessions: usize) -> Self {
        self.max_sessions_of_user = max_sessions;
        self
    }

    /// The next client that policy lets connect; others are sent away. For a service with a loop of
    /// its own. A client that connects and does not say who it is holds the others up for a second;
    /// [`Server::serve_sessions`] lets none wait.
    ///
    /// # Errors
    ///
    /// Whatever the system says; `BrokenPipe` after [`Server::stop`].
    pub fn accept(&self) -> io::Result<Session> {
        loop {
            let fd = Arc::new(self.accept_socket()?);
            if let Some(room) = self.register(&fd)
                && let Ok(session) = Session::begin(fd, self.access.clone(), room)
            {
                return Ok(session);
            }
        }
    }

    /// Serves every client in a thread of its own until [`Server::stop`]: what one client does, or
    /// does not do, holds up no other. A request that `service` drops is answered as such.
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

    /// As [`Server::serve`], for a service that keeps something for each client: `service` gets the
    /// session, and a thread for as long as it likes.
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
                let fd = Arc::new(fd);
                let Some(room) = self.register(&fd) else { continue };
                let own = Arc::clone(&fd);
                let serve = move || {
                    // Whatever ends a session, it ends only this one.
                    if let Ok(session) = Session::begin(own, self.access.clone(), room) {
                        service(session);
                    }
                };
                if thread::Builder::new().spawn_scoped(scope, serve).is_ok() {
                    continue;
                }
                if !self.waiting.is_served.load(Ordering::Acquire) {
                    thread::sleep(RESPITE);
                } else {
                    self.waiting().push_back((fd, room));
                    self.waiting.changed.notify_one();
                }
            }
        })
    }

    /// Serves, in the calling thread, clients of [`Server::serve`] for which it can make none: one
    /// after another, until [`Server::stop`]; while others wait, each until it asks nothing for a
    /// second. Whoever wants to be reached when others have used up all threads begins some of
    /// these before.
    pub fn stand_in(&self, service: impl Fn(Request<'_>)) {
        self.waiting.is_served.store(true, Ordering::Release);
        while let Some((fd, room)) = self.next_waiting() {
            let Ok(mut session) = Session::begin(fd, self.access.clone(), room) else { continue };
            loop {
                match session.recv(Some(SILENCE)) {
                    Ok(request) => service(request),
                    Err(SessionError::TimedOut) if self.waiting().is_empty() => {}
                    Err(_) => break,
                }
            }
        }
    }

    /// The client that has waited for longest; `None` after [`Server::stop`].
    fn next_waiting(&self) -> Option<(Arc<OwnedFd>, bool)> {
        let mut waiting = self.waiting();
        while !self.stopped.load(Ordering::Acquire) {
            if let Some(next) = waiting.pop_front() {
                return Some(next);
            }
            waiting = self.waiting.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<(Arc<OwnedFd>, bool)>> {
        self.waiting.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends [`Server::serve`] and every session. Requests that are being served are finished first;
    /// their clients see [`CallError::Gone`](crate::CallError::Gone).
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.waiting().clear();
        self.waiting.changed.notify_all();
        // It fails only when the count is full, which is as good.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        // None can fail in a way that matters: a socket that is not connected any more has ended,
        // too. What somebody else keeps goes on listening, for the next server.
        if self.path.is_some() {
            let _ = shutdown(&self.listener, Shutdown::Both);
        }
        for socket in self.sessions().iter().filter_map(|session| session.socket.upgrade()) {
            let _ = shutdown(&socket, Shutdown::Both);
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

    /// Notes a connection, so that [`Server::stop`] reaches it; tells whether there is room for a
    /// session. `None`: it is closed without a word, because many of this user's are being told
    /// that there is none.
    fn register(&self, fd: &Arc<OwnedFd>) -> Option<bool> {
        // Whoever cannot be told has no session anyway.
        let uid = sys::peer_credentials(fd.as_fd()).map_or(u32::MAX, |(_, uid)| uid);
        let mut sessions = self.sessions();
        sessions.retain(|session| session.socket.strong_count() > 0);
        let count =
            |which: &dyn Fn(&Connection) -> bool| sessions.iter().filter(|it| which(it)).count();
        let for_root = match self.max_sessions_of_user {
            usize::MAX => 0,
            _ if uid == 0 => 0,
            _ => self.max_sessions / 8,
        };
        let all = count(&|it| it.has_room);
        let of_user = count(&|it| it.has_room && it.uid == uid);
        let has_room =
            all + for_root < self.max_sessions && (of_user < self.max_sessions_of_user || uid == 0);
        if !has_room && count(&|it| !it.has_room && it.uid == uid) >= MOST_REFUSED {
            return None;
        }
        sessions.push(Connection { socket: Arc::downgrade(fd), uid, has_room });
        // After it is noted: `stop` either finds it or has been seen here.
        Some(has_room && !self.stopped.load(Ordering::Acquire))
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
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
