//! What the daemon's threads share, and what clients have them do with it.

mod change;
mod records;
mod returning;
mod spools;
mod turns;

use crate::{
    error::{Refusal, RequestError},
    hosted::{self, Hosted},
    process,
    quota::{Amount, Quota, QuotaError, Reserved},
    registry::{Joining, Registry, Run},
    state::{SavedRun, State, StateError},
};
use daemon_client::{NewRun, Policy, RunStatus};
use flask::SecurityServer;
pub(crate) use returning::COMPILERS;
use returning::Left;
use server_port::{Patience, VOCABULARY_BYTES, read_sealed, sealed_len, vocabulary};
pub(crate) use spools::Spools;
use std::{
    io::{self, Write as _},
    os::fd::OwnedFd,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};
use turns::Turns;

/// What is kept of a command or of a profile's name.
const MOST_SHOWN_BYTES: usize = 4096;

/// Runs that are listed at once, and bytes of them: with what each name and each row takes beside
/// its text, they fit in a message.
const MOST_ROWS: usize = 256;
const MOST_ROW_BYTES: usize = 48 << 10;
const BESIDE_NAME: usize = 4;
const BESIDE_ROW: usize = 64;

/// What is kept of what a run says of its kernel side.
const MOST_SETTLED_BYTES: usize = 4 << 20;

/// Who asks.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    pub(crate) uid: u32,
    pub(crate) pid: u32,
}

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

impl Default for Settings {
    /// The default patience, and 256 MiB. Every run finds out itself what it cannot follow.
    fn default() -> Self {
        let admits: Admits = |_, _, _| Ok(());
        Self { patience: Patience::default(), journal_bytes: 256 << 20, admits }
    }
}

/// Everything that the daemon's threads share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) state: Arc<State>,
    pub(crate) registry: Mutex<Registry>,
    /// Servers of the last daemon, whose runs are in the registry without them.
    pub(crate) left: Left,
    /// Some of them are there again.
    pub(crate) returned: Condvar,
    pub(crate) quota: Quota,
    /// Of taking records.
    pub(crate) turns: Turns,
    /// Of making answers that may be long.
    pub(crate) answers: Turns,
    pub(crate) records: Mutex<Spools>,
    pub(crate) stopping: AtomicBool,
}

impl Shared {
    /// With what the last daemon has left in `state`.
    pub(crate) fn new(
        settings: Settings,
        state: Arc<State>,
        spools: Spools,
    ) -> Result<Self, StateError> {
        let (registry, left) = returning::find(&state)?;
        Ok(Self {
            settings,
            state,
            registry: Mutex::new(registry),
            left,
            returned: Condvar::new(),
            quota: Quota::default(),
            turns: Turns::default(),
            answers: Turns::default(),
            records: Mutex::new(spools),
            stopping: AtomicBool::new(false),
        })
    }

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
        if new.name.as_deref().is_some_and(runs::is_id) {
            return Err(RequestError::Called);
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
        self.wait_for_all_of(client.uid)?;
        let reserved = self.reserve(client.uid, 1, &policy)?;
        let bytes = read_sealed(policy, reserved.bytes())?;
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

    /// Counts a policy, and so many runs, before it is read, until it is among the servers.
    fn reserve(&self, uid: u32, runs: usize, policy: &OwnedFd) -> Result<Reserved<'_>, QuotaError> {
        let bytes = sealed_len(policy, Policy::MOST_BYTES)?;
        self.reserve_with_room(uid, Amount { runs, bytes })
    }

    /// Counts what a user is about to have, where need be instead of policies that no run has.
    fn reserve_with_room(&self, uid: u32, wanted: Amount) -> Result<Reserved<'_>, QuotaError> {
        let mut registry = self.registry();
        match self.quota.reserve(uid, wanted, registry.held(uid)) {
            Err(QuotaError::Bytes) => {}
            reserved => return reserved,
        }
        for server in registry.idle_of(uid) {
            self.state.remove_server(server.id)?;
        }
        self.quota.reserve(uid, wanted, registry.held(uid))
    }

    /// Counts memory that a user has of the daemon, until this is dropped.
    pub(crate) fn reserve_bytes(&self, uid: u32, bytes: usize) -> Result<Reserved<'_>, QuotaError> {
        let registry = self.registry();
        self.quota.reserve(uid, Amount { runs: 0, bytes }, registry.held(uid))
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
        // What its runs had makes room, now that nobody has it.
        self.forget_idle()?;
        // Without the lock: compiling takes a while.
        let _compiling = self.quota.compile(uid)?;
        // Who compiled before may have compiled the same.
        if let Some(joining) = self.registry().shared(uid, digest) {
            return Ok(joining);
        }
        let owner = (uid, self.quota.labels(uid));
        let hosted = Hosted::new(&self.state, owner, (digest, bytes))?;
        let counted = self.reserve_bytes(uid, hosted.size() - bytes.len());
        let _counted = match counted {
            Ok(counted) => counted,
            Err(error) => {
                self.state.remove_server(hosted.id)?;
                return Err(error.into());
            }
        };
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
        settled: Option<OwnedFd>,
    ) -> Result<Arc<Run>, RequestError> {
        self.wait_for_run(id)?;
        let run =
            self.registry().run(id).ok_or_else(|| RequestError::Unregistered(id.to_owned()))?;
        let same = (run.kept.uid, run.kept.pid) == (client.uid, client.pid) && run.lives();
        if !same {
            return Err(RequestError::NotItsMonitor);
        }
        // It is settled once; connections made before the run began say nothing of it.
        if let Some(settled) = settled {
            let len = sealed_len(&settled, usize::MAX)?;
            if len > MOST_SETTLED_BYTES {
                return Err(RequestError::SettledTooLong);
            }
            let _reserved = self.reserve_bytes(client.uid, len)?;
            let settled = read_sealed(settled, len)?;
            let mut known = run.settled();
            if known.is_empty() {
                *known = settled;
            }
        }
        Ok(run)
    }

    /// A run has ended: its records are in the journal, and nobody waits for it.
    pub(crate) fn end(&self, run: &Arc<Run>) -> Result<(), RequestError> {
        // A session may outlive its run, and another may have its name since.
        if !self.registry().has(run) {
            return Ok(());
        }
        self.finish_spool(&run.kept.id, run.kept.uid)?;
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
        // The registry is free again before the state is written.
        let idle = self.registry().idle();
        for server in idle {
            self.state.remove_server(server.id)?;
        }
        Ok(())
    }

    /// Some of the runs that a client may see, behind that number: no more than fit in a message,
    /// so that nobody's runs cost memory here. The number of the last, if there are more.
    pub(crate) fn runs(&self, client: Client, after: u64) -> (Vec<RunStatus>, Option<u64>) {
        let found = self.registry().listed_after(client.uid, after, MOST_ROWS + 1);
        let (mut rows, mut bytes, mut last) = (Vec::new(), 0, after);
        for (number, run) in found.iter().take(MOST_ROWS) {
            let row = run.status();
            let names = row.booleans.iter().map(|(name, _)| name.len() + BESIDE_NAME);
            bytes += row.command.len() + row.profile.len() + row.id.len() + names.sum::<usize>();
            bytes += BESIDE_ROW;
            if bytes > MOST_ROW_BYTES && !rows.is_empty() {
                break;
            }
            rows.push(row);
            last = *number;
        }
        let next = (rows.len() < found.len()).then_some(last);
        (rows, next)
    }
}

/// Says something to whoever reads the daemon's standard error. If nobody does, that is no reason
/// to stop.
pub(crate) fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "dewar daemon: {line}");
}

/// What people read about a run, in lists of many runs.
fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(MOST_SHOWN_BYTES);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}
