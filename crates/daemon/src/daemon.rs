//! The daemon itself: what it holds, from its start to its end.

mod access;
mod change;
mod records;

use crate::{
    error::RequestError,
    hosted::{self, Hosted},
    journal::{Journal, JournalError, SetAside},
    process,
    registry::{Joining, Registry, Run},
    session::{self, Client},
    state::{SavedRun, State, StateError},
};
pub(crate) use change::ChangeError;
use daemon_client::{DaemonDirs, NewRun, Policy, Reader, RunStatus};
use flask::SecurityServer;
use records::Spools;
use rustix::{
    fs::{FlockOperation, flock},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use server_port::{Patience, VOCABULARY_BYTES, read_sealed, vocabulary};
use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    },
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// The most connections at a time, and those of one user: two or three for each run.
const SESSIONS: usize = 4096;
const SESSIONS_OF_USER: usize = SESSIONS / 8;

/// What is kept of a command or of a profile's name.
const MOST_SHOWN_BYTES: usize = 4096;

/// What is kept of what a run says of its kernel side.
const MOST_SETTLED_BYTES: usize = 4 << 20;

/// How the daemon behaves.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long a change of policy waits for a run that does not answer, before it is reported,
    /// frozen, killed.
    pub patience: Patience,
    /// The size from which on the journal throws its oldest records away.
    pub journal_bytes: u64,
    /// Whether a run that has said this of its kernel side can go on under the policy of that
    /// server, by killing if need be; if not, why not.
    pub admits: Admits,
}

/// See [`Settings::admits`].
pub type Admits =
    fn(settled: &[u8], proposed: &dyn SecurityServer, kills: bool) -> Result<(), Refusal>;

/// Why a run cannot go on under another policy, in words for a person.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl Default for Settings {
    /// The default patience, and 256 MiB. Every run finds out itself what it cannot follow.
    fn default() -> Self {
        let admits: Admits = |_, _, _| Ok(());
        Self { patience: Patience::default(), journal_bytes: 256 << 20, admits }
    }
}

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

/// Everything that the daemon's threads share.
pub(crate) struct Shared {
    settings: Settings,
    state: Arc<State>,
    registry: Mutex<Registry>,
    records: Mutex<Spools>,
    stopping: AtomicBool,
}

/// See the crate.
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
        let records = Mutex::new(Spools::new(journal, place.state.join("spool")));
        let stopping = AtomicBool::new(false);
        let registry = Mutex::new(restore(&state)?);
        let shared = Shared { settings, state, registry, records, stopping };
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

/// The runs that go on, with their servers.
fn restore(state: &Arc<State>) -> Result<Registry, StateError> {
    let mut registry = Registry::default();
    let (servers, runs) = state.load()?;
    for kept in servers {
        // Servers that no run has are not for anybody.
        let Some(run) = runs.iter().find(|run| run.server == kept.id) else {
            state.remove_server(kept.id)?;
            continue;
        };
        match Hosted::restore(state, run.uid, &kept) {
            Ok(hosted) => registry.servers.push(hosted),
            Err(error) => {
                say(format_args!("a policy of the last daemon is not served: {error}"));
            }
        }
    }
    for kept in runs {
        let hosted = registry.servers.iter().find(|server| server.id == kept.server).cloned();
        let run = process::open(kept.pid, kept.started).ok().zip(hosted);
        // It has applied some state; until it says which, none is assumed.
        let run = run.and_then(|(pidfd, hosted)| {
            Run::new(kept.clone(), pidfd, hosted, flask::Seqno(0)).ok()
        });
        match run {
            Some(run) => registry.add(run),
            None => state.remove_run(&kept.id)?,
        }
    }
    for server in registry.idle() {
        state.remove_server(server.id)?;
    }
    Ok(registry)
}

impl Shared {
    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run begins; returns it with its end of the spool.
    pub(crate) fn register(
        &self,
        client: Client,
        pidfd: OwnedFd,
        new: &NewRun,
        theirs: [u8; VOCABULARY_BYTES],
        policy: Option<OwnedFd>,
    ) -> Result<(Arc<Run>, OwnedFd), RequestError> {
        let named = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if new.id.is_empty() || new.id.len() > 64 || !new.id.chars().all(named) {
            return Err(RequestError::Name);
        }
        if theirs != vocabulary() {
            return Err(RequestError::OtherVersion);
        }
        if self.records().journal.knows(&new.id)? {
            return Err(RequestError::Known(new.id.clone()));
        }
        let new = NewRun {
            id: new.id.clone(),
            command: shortened(&new.command),
            profile: shortened(&new.profile),
            name: new.name.as_deref().map(shortened),
        };
        let policy = policy.ok_or(RequestError::NoPolicy)?;
        let bytes = read_sealed(policy, Policy::MOST_BYTES)?;
        if self.registry().is_full(client.uid, bytes.len()) {
            return Err(RequestError::TooMany);
        }
        let started = process::started(client.pid).ok_or(RequestError::Unseen)?;
        let joining = self.host(client.uid, &bytes)?;
        let hosted = Arc::clone(&joining.0);
        let kept = SavedRun {
            id: new.id.clone(),
            server: hosted.id,
            uid: client.uid,
            pid: client.pid,
            started,
            command: new.command.clone(),
            profile: new.profile.clone(),
        };
        let made = self.add(kept, pidfd, hosted, &new);
        drop(joining);
        if made.is_err() {
            self.forget_idle()?;
        }
        made
    }

    fn add(
        &self,
        kept: SavedRun,
        pidfd: OwnedFd,
        hosted: Arc<Hosted>,
        new: &NewRun,
    ) -> Result<(Arc<Run>, OwnedFd), RequestError> {
        self.state.add_run(&kept).map_err(|_| RequestError::Registered(kept.id.clone()))?;
        let (uid, seqno) = (kept.uid, hosted.state_number());
        let run = match Run::new(kept, pidfd, hosted, seqno) {
            Ok(run) => run,
            Err(error) => {
                self.state.remove_run(&new.id)?;
                return Err(error.into());
            }
        };
        self.registry().add(Arc::clone(&run));
        // Last, because a spool without a run is one whose run has ended.
        match self.begin_spool(new, uid) {
            Ok(spool) => Ok((run, spool)),
            Err(error) => self.forget(&run).and(Err(error)),
        }
    }

    /// A server for a policy: the one that this user's runs have, or a new one.
    fn host(&self, uid: u32, bytes: &[u8]) -> Result<Joining, RequestError> {
        let digest = hosted::digest(bytes);
        if let Some(joining) = self.registry().shared(uid, digest) {
            return Ok(joining);
        }
        // Without the lock: compiling takes a while.
        let hosted = Hosted::new(&self.state, uid, (digest, bytes))?;
        let mut registry = self.registry();
        if let Some(other) = registry.shared(uid, digest) {
            self.state.remove_server(hosted.id)?;
            return Ok(other);
        }
        Ok(registry.serve(&hosted))
    }

    /// The run whose monitor the client is.
    pub(crate) fn attach(
        &self,
        client: Client,
        id: &str,
        settled: Vec<u8>,
    ) -> Result<Arc<Run>, RequestError> {
        let run =
            self.registry().run(id).ok_or_else(|| RequestError::Unregistered(id.to_owned()))?;
        let same = (run.kept.uid, run.kept.pid) == (client.uid, client.pid) && run.lives();
        if !same {
            return Err(RequestError::NotItsMonitor);
        }
        if settled.len() > MOST_SETTLED_BYTES {
            return Err(RequestError::SettledTooLong);
        }
        // It is settled once; connections made before the run began say nothing of it.
        let mut known = run.settled();
        if known.is_empty() {
            *known = settled;
        }
        drop(known);
        Ok(run)
    }

    /// A run has ended: its records are in the journal, and nobody waits for it.
    pub(crate) fn end(&self, run: &Run) -> Result<(), RequestError> {
        self.finish_spool(&run.kept.id)?;
        self.forget(run)
    }

    fn forget(&self, run: &Run) -> Result<(), RequestError> {
        run.member().leave();
        self.state.remove_run(&run.kept.id)?;
        self.registry().remove(&run.kept.id);
        self.forget_idle()
    }

    /// Forgets the servers that nobody needs any more.
    fn forget_idle(&self) -> Result<(), RequestError> {
        for server in self.registry().idle() {
            self.state.remove_server(server.id)?;
        }
        Ok(())
    }

    pub(crate) fn runs(&self, client: Client) -> Vec<RunStatus> {
        let runs = self.registry().runs(client.uid);
        runs.iter().map(|run| run.status()).collect()
    }

    fn begin_spool(&self, run: &NewRun, uid: u32) -> Result<OwnedFd, RequestError> {
        let mut records = self.records();
        let reader = Reader::create(&records.path(&run.id))?;
        let share = reader.share()?;
        records.journal.begin_run(run, uid, records::now())?;
        records.add(&run.id, reader, 0);
        Ok(share)
    }
}

/// Says something to whoever reads the daemon's standard error. If nobody does, that is no reason
/// to stop.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "dewar daemon: {line}");
}

/// What people read about a run, in lists of many runs.
fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(MOST_SHOWN_BYTES);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}
