//! The daemon itself: what it holds, from its start to its end.

use crate::{
    access,
    journal::{Journal, JournalError, SetAside},
    session,
    shared::{COMPILERS, Settings, Shared, Spools, say},
    state::{State, StateError},
};
use daemon_client::DaemonDirs;
use rustix::{
    fs::{FlockOperation, flock},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    },
    sync::{Arc, atomic::Ordering},
    thread,
};

/// The most connections at a time, and those of one user: two or three for each run.
const SESSIONS: usize = 4096;
const SESSIONS_OF_USER: usize = SESSIONS / 8;

/// Why the daemon did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is one.
    #[error("a daemon runs already: process {0}")]
    Runs(String),
    /// Its directories, its lock or its socket.
    #[error("cannot {what} `{path}`: {source}")]
    Io {
        /// What was to be done.
        what: &'static str,
        /// With what.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The policy of its own port.
    #[error("the daemon's own policy is unusable, so nobody may connect: {0}")]
    Port(Box<dyn std::error::Error + Send + Sync>),
    /// What was kept of the last daemon.
    #[error("{source}: `{}`; if it is damaged, move it away: runs that use this daemon end then", .path.display())]
    Kept {
        /// Where.
        path: std::path::PathBuf,
        /// What is wrong.
        source: StateError,
    },
    /// Its state.
    #[error(transparent)]
    State(#[from] StateError),
    /// Its journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A daemon that listens.
pub struct Daemon {
    shared: Shared,
    port: ipc::Server,
    /// Held as long as the daemon lives.
    _lock: File,
}

impl Daemon {
    /// Goes on where the last daemon at `place` stopped, and listens; on `bound`, if a service
    /// manager has bound the socket.
    ///
    /// # Errors
    ///
    /// [`StartError`].
    pub fn start(
        place: &DaemonDirs,
        settings: Settings,
        bound: Option<OwnedFd>,
    ) -> Result<Self, StartError> {
        let io = |what, path: &std::path::Path| {
            let path = path.display().to_string();
            move |source| StartError::Io { what, path, source }
        };
        place.create().map_err(io("create the directories of", &place.runtime))?;
        let lock = lock(place)?;
        let path = place.state.join("state.db");
        let state = State::open(&path).map_err(|source| StartError::Kept { path, source })?;
        let state = Arc::new(state);
        let (journal, aside) =
            Journal::open_or_set_aside(&place.journal(), settings.journal_bytes)?;
        if let Some(SetAside { path, why }) = aside {
            say(format_args!(
                "{why}; it is now `{}`, and a new one has begun. `sqlite3 FILE .recover` reads what is left of the old one",
                path.display()
            ));
        }
        let socket = place.socket();
        let access = access::guard(place.system).map_err(StartError::Port)?;
        let port = match bound {
            Some(bound) => ipc::Server::from_bound(bound, access),
            None => {
                // Left over: the lock is ours.
                let _ = std::fs::remove_file(&socket);
                ipc::Server::bind(&socket, access)
            }
        };
        let port = port.map_err(io("listen at", &socket))?.with_max_sessions(SESSIONS);
        let port =
            if place.system { port.with_max_sessions_of_user(SESSIONS_OF_USER) } else { port };
        raise_descriptors();
        let mode = std::fs::Permissions::from_mode(if place.system { 0o666 } else { 0o600 });
        std::fs::set_permissions(&socket, mode).map_err(io("set the permissions of", &socket))?;
        let spools = Spools::new(journal, place.state.join("spool"));
        let shared = Shared::new(settings, state, spools)?;
        shared.find_spools()?;
        Ok(Self { shared, port, _lock: lock })
    }

    /// Serves until [`Daemon::stop`]. What lies in spools then is in the journal.
    ///
    /// # Errors
    ///
    /// Whatever the system says about the socket.
    pub fn serve(&self) -> io::Result<()> {
        thread::scope(|scope| {
            scope.spawn(|| self.shared.take_records_until_stopped());
            (0..COMPILERS).for_each(|_| drop(scope.spawn(|| self.shared.take_back())));
            let served = self.port.serve_sessions(|session| session::serve(&self.shared, session));
            self.stop();
            served
        })
    }

    /// Ends [`Daemon::serve`]. Runs go on, and wait for the next daemon.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        for server in &self.shared.registry().servers {
            server.members.stop();
        }
        self.port.stop();
    }
}

/// Lets this process have as many descriptors as it may. If it may have few, it takes few
/// connections.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Takes the lock, and writes there who has it.
fn lock(place: &DaemonDirs) -> Result<File, StartError> {
    let path = place.state.join("lock");
    let io = |what| {
        let path = path.display().to_string();
        move |source| StartError::Io { what, path, source }
    };
    let options =
        File::options().read(true).write(true).create(true).truncate(false).mode(0o600).clone();
    let mut file = options.open(&path).map_err(io("open"))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut holder = String::new();
        file.read_to_string(&mut holder).map_err(io("read"))?;
        return Err(StartError::Runs(holder.trim().to_owned()));
    }
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    write(&mut file).map_err(io("write"))?;
    Ok(file)
}
