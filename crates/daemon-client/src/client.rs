//! What a run, or an administrator, holds of the daemon.

use crate::{
    dirs::{DaemonDirs, SOCKET},
    protocol::{self, Changed, Command, NewRun, Policy, Reply, RunStatus, Target},
    spool::Writer,
};
use flask::Seqno;
use ipc::{Call, CallError, ConnectError, Port, Transport};
use rustix::fs::{Mode, OFlags, open};
use server_port::{PolicyUpdate, RemoteServer, received, sealed, vocabulary};
use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How long a daemon may take to take a connection.
const CONNECT: Duration = Duration::from_secs(1);

/// How long a query waits for a daemon that is away, and a registration for its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a change of policy may take.
const CHANGE: Duration = Duration::from_secs(120);

/// Why the daemon is of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// None listens.
    #[error("no daemon listens at `{0}`; start one with `dewar daemon`")]
    Absent(PathBuf),
    /// Somebody else can have made its socket.
    #[error(
        "`{0}` belongs to another user, or others may write there: the daemon there is not trusted"
    )]
    Untrusted(PathBuf),
    /// It does not take the connection.
    #[error("the daemon does not take a connection: {0}")]
    Connect(#[source] ConnectError),
    /// It does not answer.
    #[error("the daemon does not answer: {0}")]
    Call(#[from] CallError),
    /// It answers something else.
    #[error("the daemon's answer makes no sense: is it of another version of Dewar?")]
    Nonsense,
    /// It says no.
    #[error("{0}")]
    Refused(String),
    /// A run that goes on cannot follow the change. Nothing has changed.
    #[error("{0}")]
    Conflict(String),
    /// The system says no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A run's hold on the daemon.
pub struct Registration {
    /// The run's security server.
    pub server: Arc<RemoteServer>,
    id: String,
    applied: Seqno,
    route: Arc<Route>,
    stop: Arc<AtomicBool>,
}

/// The way to the socket: by its path, or, once this process's own view may hide that, from its
/// directory, which is then the working directory.
struct Route {
    path: PathBuf,
    directory: OwnedFd,
    inside: AtomicBool,
    /// What the run says of its kernel side, once it has one.
    settled: OnceLock<Vec<u8>>,
}

impl Route {
    fn new(place: &DaemonDirs) -> Result<Self, ClientError> {
        if !place.is_trusted() {
            return Err(match place.runtime.exists() {
                true => ClientError::Untrusted(place.runtime.clone()),
                false => ClientError::Absent(place.socket()),
            });
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(&place.runtime, flags, Mode::empty()).map_err(io::Error::from)?;
        let (inside, settled) = (AtomicBool::new(false), OnceLock::new());
        Ok(Self { path: place.socket(), directory, inside, settled })
    }

    fn connect(&self, transport: Transport) -> Result<Port, ClientError> {
        let path = if self.inside.load(Ordering::Acquire) { Path::new(SOCKET) } else { &self.path };
        Port::connect_within(path, transport, CONNECT).map_err(|error| match error {
            ConnectError::Io(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                ClientError::Absent(self.path.clone())
            }
            error => ClientError::Connect(error),
        })
    }

    /// A connection that speaks for a run.
    fn attach(&self, run: &str, transport: Transport) -> Result<(Port, Seqno), ClientError> {
        let mut port = self.connect(transport)?;
        let settled = self.settled.get().map(|settled| sealed(settled)).transpose()?;
        let attach = Command::Attach { run: run.to_owned() };
        match command(&mut port, &attach, settled.as_ref())?.0 {
            Reply::Attached { seqno } => Ok((port, Seqno(seqno))),
            other => Err(unexpected(other)),
        }
    }
}

fn unexpected(reply: Reply) -> ClientError {
    match reply {
        Reply::Refused(why) => ClientError::Refused(why),
        Reply::Conflict(why) => ClientError::Conflict(why),
        _ => ClientError::Nonsense,
    }
}

fn command(
    port: &mut Port,
    command: &Command,
    memory: Option<&OwnedFd>,
) -> Result<(Reply, Vec<OwnedFd>), ClientError> {
    let body = protocol::encode(command);
    let descriptors: Vec<_> = memory.iter().map(|fd| fd.as_fd()).collect();
    let mut reply = port.send(Call { body: &body, descriptors: &descriptors, effective: None })?;
    let read = protocol::read(&received(&mut reply)?).ok_or(ClientError::Nonsense)?;
    Ok((read, reply.descriptors))
}

/// Registers a run with the daemon at `place`; what comes back is its security server, and where
/// its audit records go. The calling process must be the run's monitor, and starts no thread yet.
///
/// # Errors
///
/// [`ClientError`]; [`ClientError::Absent`] if none listens.
pub fn register(
    place: &DaemonDirs,
    run: &NewRun,
    policy: &Policy,
) -> Result<(Registration, Writer), ClientError> {
    let route = Arc::new(Route::new(place)?);
    let policy = sealed(&policy.to_bytes())?;
    let begin = Instant::now();
    let mut run = run.clone();
    loop {
        match try_register(&route, &run, &policy) {
            // It ended in between, and may have registered the run before.
            Err(ClientError::Call(CallError::Gone)) if begin.elapsed() < PATIENCE => {
                withdraw(&route, &run.id, begin + PATIENCE)?;
                run.id.push('x');
            }
            done => return done,
        }
    }
}

fn try_register(
    route: &Arc<Route>,
    run: &NewRun,
    policy: &OwnedFd,
) -> Result<(Registration, Writer), ClientError> {
    let mut port = route.connect(Transport::Socket)?;
    port.set_timeout(Some(PATIENCE));
    let register = Command::Register { run: run.clone(), vocabulary: vocabulary() };
    let (reply, mut descriptors) = command(&mut port, &register, Some(policy))?;
    let Reply::Attached { seqno } = reply else { return Err(unexpected(reply)) };
    let spool = Writer::new(descriptors.pop().ok_or(ClientError::Nonsense)?)?;
    let (way, id) = (Arc::clone(route), run.id.clone());
    let connect = move || {
        let attached = way.attach(&id, Transport::Memory);
        attached.map(|(port, _)| port).map_err(io::Error::other)
    };
    let server = Arc::new(RemoteServer::new(connect, PATIENCE));
    let (applied, stop) = (Seqno(seqno), Arc::default());
    let registration =
        Registration { server, id: run.id.clone(), applied, route: Arc::clone(route), stop };
    Ok((registration, spool))
}

/// Takes back a registration that may have come to be.
fn withdraw(route: &Route, run: &str, until: Instant) -> Result<(), ClientError> {
    loop {
        match route.attach(run, Transport::Socket) {
            Ok((mut port, _)) => {
                command(&mut port, &Command::End, None)?;
                return Ok(());
            }
            Err(ClientError::Refused(_)) => return Ok(()),
            Err(error) if Instant::now() >= until => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

impl Registration {
    /// The run's name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// From now on follows the policy in a thread, having told the daemon what is `settled` in the
    /// run's kernel side, as the daemon's `Settings::admits` reads it: `apply` makes each change
    /// hold, and returns what it has to say about it, or `None` if it does not hold yet. The
    /// working directory of this process is from here on that of the socket, so that a new daemon
    /// is found whatever this process's view hides.
    ///
    /// # Errors
    ///
    /// Whatever the system says; then a change of policy finds that the run does not answer.
    pub fn follow(
        &self,
        settled: Vec<u8>,
        apply: impl FnMut(PolicyUpdate) -> Option<Vec<u8>> + Send + 'static,
    ) -> io::Result<()> {
        // It is called once.
        let _ = self.route.settled.set(settled);
        rustix::process::fchdir(&self.route.directory)?;
        self.route.inside.store(true, Ordering::Release);
        self.follow_by_path(apply)
    }

    /// The same for a program that has no kernel side, and whose own working directory and view
    /// stay as they are: the daemon is found by the path of its socket.
    ///
    /// # Errors
    ///
    /// Whatever the system says about the thread.
    pub fn follow_by_path(
        &self,
        apply: impl FnMut(PolicyUpdate) -> Option<Vec<u8>> + Send + 'static,
    ) -> io::Result<()> {
        let (server, stop) = (Arc::clone(&self.server), Arc::clone(&self.stop));
        let applied = self.applied;
        let follow = move || server.follow(applied, &stop, apply);
        thread::Builder::new().name("follower".into()).spawn(follow).map(drop)
    }

    /// Replaces the policy of this run alone, unless the run cannot follow it; with `kills`, by
    /// killing if need be. It does not hold here before the caller applies it.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; then the policy before is in force.
    pub fn load(&self, policy: &Policy, kills: bool) -> Result<Seqno, ClientError> {
        let (mut port, _) = self.route.attach(&self.id, Transport::Socket)?;
        port.set_timeout(Some(PATIENCE));
        let memory = sealed(&policy.to_bytes())?;
        match command(&mut port, &Command::Load { kills }, Some(&memory))?.0 {
            Reply::Loaded { seqno } => Ok(Seqno(seqno)),
            other => Err(unexpected(other)),
        }
    }

    /// The run has ended: returns when all of its records are in the journal. A daemon that is away
    /// takes them when it comes back.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub fn end(&self) -> Result<(), ClientError> {
        self.stop.store(true, Ordering::Release);
        let (mut port, _) = self.route.attach(&self.id, Transport::Socket)?;
        port.set_timeout(Some(PATIENCE));
        match command(&mut port, &Command::End, None)?.0 {
            Reply::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }
}

/// A connection for an administrator.
pub struct Administration(Port);

impl Administration {
    /// Connects to the daemon at `place`.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::Absent`] if none listens.
    pub fn connect(place: &DaemonDirs) -> Result<Self, ClientError> {
        let mut port = Route::new(place)?.connect(Transport::Socket)?;
        port.set_timeout(Some(CHANGE));
        Ok(Self(port))
    }

    /// Changes booleans; returns when every run concerned has applied it, or when it is known that
    /// it will not.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; refused, nothing has changed.
    pub fn set(
        &mut self,
        target: Target,
        booleans: &[(String, bool)],
    ) -> Result<Vec<Changed>, ClientError> {
        let set = Command::Set { target, booleans: booleans.to_vec() };
        match command(&mut self.0, &set, None)?.0 {
            Reply::Changed(changed) => Ok(changed),
            other => Err(unexpected(other)),
        }
    }

    /// The runs that this user may see.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub fn runs(&mut self) -> Result<Vec<RunStatus>, ClientError> {
        let (mut all, mut after) = (Vec::new(), 0);
        loop {
            match command(&mut self.0, &Command::Runs { after }, None)?.0 {
                Reply::Runs { runs, next } => {
                    all.extend(runs);
                    match next {
                        Some(next) if next > after => after = next,
                        _ => return Ok(all),
                    }
                }
                other => return Err(unexpected(other)),
            }
        }
    }

    /// Has everything that lies in this user's spools taken into the journal; root: in everybody's.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub fn flush(&mut self) -> Result<(), ClientError> {
        match command(&mut self.0, &Command::Flush, None)?.0 {
            Reply::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }
}
