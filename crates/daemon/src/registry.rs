//! The runs that are registered, and which security server each has.

use crate::{
    error::ChangeError,
    hosted::{HostError, Hosted},
    process,
    quota::Amount,
    state::SavedRun,
};
use daemon_client::RunStatus;
use flask::{SecurityServer as _, Seqno};
use server_port::Member;
use std::{
    collections::BTreeMap,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, atomic::Ordering},
};

/// Servers without a run that are kept for the next run with the same policy.
const MOST_IDLE: usize = 16;

/// Bytes of the labels of one such server.
const MOST_IDLE_LABEL_BYTES: usize = 1 << 20;

/// Bytes of the names of booleans that are shown of a run.
const MOST_BOOLEAN_BYTES: usize = 4096;

/// A run.
///
/// Locks are taken in this order: `forking`, `asking`, the registry's, and then those that are held
/// for a moment only: `hosted`, `member`, `settled`, the quota's, the state's. So whoever has the
/// registry waits for no answer, and nobody asks for it while one is sent.
pub(crate) struct Run {
    pub(crate) kept: SavedRun,
    pub(crate) pidfd: OwnedFd,
    /// Held by whoever finds out whether the run needs a server of its own, and gives it one.
    forking: Mutex<()>,
    /// Read while a query is answered, so that a run changes its server between two of them.
    asking: RwLock<()>,
    hosted: Mutex<Arc<Hosted>>,
    member: Mutex<Arc<Member>>,
    /// What it has said of its kernel side; empty until it has.
    settled: Mutex<Vec<u8>>,
}

impl Run {
    /// A run that has applied the policy state `applied`.
    pub(crate) fn new(
        kept: SavedRun,
        pidfd: OwnedFd,
        hosted: Arc<Hosted>,
        applied: Seqno,
    ) -> std::io::Result<Arc<Self>> {
        let member = join(&hosted, &kept.id, applied, pidfd.try_clone()?);
        Ok(Arc::new(Self {
            kept,
            pidfd,
            forking: Mutex::default(),
            asking: RwLock::default(),
            hosted: Mutex::new(hosted),
            member: Mutex::new(member),
            settled: Mutex::default(),
        }))
    }

    /// What the run has said of its kernel side; empty if it has not yet.
    pub(crate) fn settled(&self) -> MutexGuard<'_, Vec<u8>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server that the run has now.
    pub(crate) fn hosted(&self) -> Arc<Hosted> {
        Arc::clone(&self.hosted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Until this is dropped, the run keeps the server that it has.
    pub(crate) fn asking(&self) -> RwLockReadGuard<'_, ()> {
        self.asking.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until this is dropped, nobody else gives the run another server. Nobody may ask for it who
    /// has the registry.
    pub(crate) fn forking(&self) -> MutexGuard<'_, ()> {
        self.forking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn member(&self) -> Arc<Member> {
        Arc::clone(&self.lock_member())
    }

    pub(crate) fn lives(&self) -> bool {
        process::lives(&self.pidfd)
    }

    /// Gives the run a server of its own that is like the one it has. The caller holds
    /// [`Run::forking`], and not the registry: an answer may take long.
    pub(crate) fn fork(&self) -> Result<Arc<Hosted>, HostError> {
        let _asking = self.asking.write().unwrap_or_else(PoisonError::into_inner);
        // Whatever can fail comes before the fork: what is returned is this run's alone.
        let pidfd = self.pidfd.try_clone()?;
        let fork = self.hosted().fork(&self.kept.id)?;
        let mut member = self.lock_member();
        let joined = join(&fork, &self.kept.id, member.applied(), pidfd);
        member.leave();
        *member = joined;
        *self.hosted.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&fork);
        Ok(fork)
    }

    fn lock_member(&self) -> MutexGuard<'_, Arc<Member>> {
        self.member.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn status(&self) -> RunStatus {
        let hosted = self.hosted();
        let SavedRun { id, uid, pid, command, profile, .. } = self.kept.clone();
        let seqno = hosted.seqno().unwrap_or_default().0;
        let (booleans, more) = hosted.some_booleans(MOST_BOOLEAN_BYTES);
        let more_booleans = more as u64;
        RunStatus { id, uid, pid, command, profile, seqno, booleans, more_booleans }
    }
}

/// Root sees all.
fn may_see(uid: u32, run: &SavedRun) -> bool {
    uid == 0 || run.uid == uid
}

fn join(hosted: &Hosted, run: &str, applied: Seqno, pidfd: OwnedFd) -> Arc<Member> {
    let lives = move || process::lives(&pidfd);
    Arc::new(hosted.members.join(run.to_owned(), applied, lives))
}

/// A run of the last daemon whose policy is not compiled yet.
pub(crate) struct Returning {
    pub(crate) kept: SavedRun,
    pub(crate) pidfd: OwnedFd,
}

/// A run as it is listed.
pub(crate) enum Listed {
    Run(Arc<Run>),
    Returning(SavedRun),
}

impl Listed {
    /// Of one whose policy is not compiled yet, no policy state is known.
    pub(crate) fn status(&self) -> RunStatus {
        match self {
            Self::Run(run) => run.status(),
            Self::Returning(kept) => {
                let SavedRun { id, uid, pid, command, profile, .. } = kept.clone();
                let (seqno, booleans, more_booleans) = (0, Vec::new(), 0);
                RunStatus { id, uid, pid, command, profile, seqno, booleans, more_booleans }
            }
        }
    }
}

/// A server that a run is about to have: until this ends, nobody changes it for another run alone.
pub(crate) struct Joining(pub(crate) Arc<Hosted>);

impl Drop for Joining {
    fn drop(&mut self) {
        self.0.joining.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The runs, and the security servers that they use.
#[derive(Default)]
pub(crate) struct Registry {
    runs: BTreeMap<String, Arc<Run>>,
    returning: BTreeMap<String, Returning>,
    /// In the order of their beginning.
    order: BTreeMap<u64, String>,
    /// The number of the last that began.
    last: u64,
    pub(crate) servers: Vec<Arc<Hosted>>,
}

impl Registry {
    pub(crate) fn run(&self, id: &str) -> Option<Arc<Run>> {
        self.runs.get(id).cloned()
    }

    /// The runs that `uid` may see: root sees all.
    pub(crate) fn runs(&self, uid: u32) -> Vec<Arc<Run>> {
        let runs = self.order.values().filter_map(|id| self.runs.get(id));
        runs.filter(|run| may_see(uid, &run.kept)).cloned().collect()
    }

    /// The first so many of all that `uid` may see and that began after that number, each with its
    /// own.
    pub(crate) fn listed_after(&self, uid: u32, after: u64, most: usize) -> Vec<(u64, Listed)> {
        let listed = |(number, id): (&u64, &String)| {
            let listed = match (self.runs.get(id), self.returning.get(id)) {
                (Some(run), _) if may_see(uid, &run.kept) => Listed::Run(Arc::clone(run)),
                (None, Some(it)) if may_see(uid, &it.kept) => Listed::Returning(it.kept.clone()),
                _ => return None,
            };
            Some((*number, listed))
        };
        let later = self.order.range(after.saturating_add(1)..);
        later.filter_map(listed).take(most).collect()
    }

    /// A run of the last daemon goes on, and has no server yet.
    pub(crate) fn expect(&mut self, run: Returning) {
        self.number(&run.kept.id);
        self.returning.insert(run.kept.id.clone(), run);
    }

    /// The runs that wait for that server, which will wait no more.
    pub(crate) fn returning_to(&mut self, server: i64) -> Vec<Returning> {
        self.returning.extract_if(.., |_, run| run.kept.server == server).map(|it| it.1).collect()
    }

    /// One of them has its server.
    pub(crate) fn add_returned(&mut self, run: Arc<Run>) {
        self.runs.insert(run.kept.id.clone(), run);
    }

    /// The runs without a server that `uid` may see.
    pub(crate) fn returning(&self, uid: u32) -> impl Iterator<Item = &SavedRun> {
        self.returning.values().map(|run| &run.kept).filter(move |kept| may_see(uid, kept))
    }

    /// Whether the run of that name has no server yet.
    pub(crate) fn is_returning(&self, id: &str) -> bool {
        self.returning.contains_key(id)
    }

    /// What a user has: runs with what they have said of themselves, and policies, also those that
    /// no run has any more.
    pub(crate) fn held(&self, uid: u32) -> Amount {
        let (mut runs, mut settled) = (0, 0);
        for run in self.runs.values().filter(|run| run.kept.uid == uid) {
            runs += 1;
            settled += run.settled().len();
        }
        let servers = self.servers.iter().filter(|server| server.owner == uid);
        Amount { runs, bytes: settled + servers.map(|it| it.size()).sum::<usize>() }
    }

    /// The runs that have that server.
    pub(crate) fn users(&self, server: &Hosted) -> Vec<Arc<Run>> {
        let has = |run: &&Arc<Run>| std::ptr::eq(Arc::as_ptr(&run.hosted()), server);
        self.runs.values().filter(has).cloned().collect()
    }

    fn number(&mut self, id: &str) {
        self.last += 1;
        self.order.insert(self.last, id.to_owned());
    }

    pub(crate) fn add(&mut self, run: Arc<Run>) {
        self.number(&run.kept.id);
        self.runs.insert(run.kept.id.clone(), run);
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.runs.remove(id);
        self.order.retain(|_, it| it != id);
    }

    /// The server for a run of `uid` that begins with the policy of that digest, if there is one.
    pub(crate) fn shared(&mut self, uid: u32, digest: [u8; 32]) -> Option<Joining> {
        let fits = |it: &&Arc<Hosted>| {
            it.owner == uid && it.shared.load(Ordering::Acquire) && *it.digest() == digest
        };
        let found = self.servers.iter().find(fits)?;
        Some(Self::joining(found))
    }

    /// A new server, for a run that begins.
    pub(crate) fn serve(&mut self, hosted: &Arc<Hosted>) -> Joining {
        self.servers.push(Arc::clone(hosted));
        Self::joining(hosted)
    }

    fn joining(hosted: &Arc<Hosted>) -> Joining {
        hosted.joining.fetch_add(1, Ordering::AcqRel);
        Joining(Arc::clone(hosted))
    }

    /// Takes out the servers that nobody needs any more.
    pub(crate) fn idle(&mut self) -> Vec<Arc<Hosted>> {
        let mut keep = MOST_IDLE;
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        // The newest are the most likely to be used again.
        for server in self.servers.iter().rev() {
            // Runs hold theirs, and so does whoever is about to make a run.
            let idle = Arc::strong_count(server) == 1;
            let shared = server.shared.load(Ordering::Acquire);
            let large = server.label_bytes() > MOST_IDLE_LABEL_BYTES;
            if idle && (!shared || large || keep == 0) {
                gone.push(Arc::clone(server));
            } else {
                keep -= usize::from(idle);
                kept.push(Arc::clone(server));
            }
        }
        kept.reverse();
        self.servers = kept;
        gone
    }

    /// Takes out the servers of a user that no run has.
    pub(crate) fn idle_of(&mut self, uid: u32) -> Vec<Arc<Hosted>> {
        let idle = |server: &mut Arc<Hosted>| server.owner == uid && Arc::strong_count(server) == 1;
        self.servers.extract_if(.., idle).collect()
    }

    /// The run that a user means.
    ///
    /// # Errors
    ///
    /// Why it is none, for people.
    pub(crate) fn find(&self, uid: u32, name: &str) -> Result<Arc<Run>, ChangeError> {
        let runs = self.runs(uid);
        if name == "last" {
            // Another user's may have begun since; root names that by its id.
            let own = runs.iter().rfind(|run| run.kept.uid == uid);
            return own.cloned().ok_or(ChangeError::NoRuns);
        }
        if let Some(run) = runs.iter().find(|run| run.kept.id == name) {
            return Ok(Arc::clone(run));
        }
        let mut fitting = runs.iter().filter(|run| run.kept.id.starts_with(name));
        let returning = self.returning(uid).any(|kept| kept.id.starts_with(name));
        match (fitting.next(), fitting.next()) {
            (Some(run), None) if !returning => Ok(Arc::clone(run)),
            (None, _) if returning => Err(ChangeError::Returning),
            (Some(_), _) => Err(ChangeError::Ambiguous(name.to_owned())),
            (None, _) => Err(ChangeError::NoSuchRun(name.to_owned())),
        }
    }

    /// The servers of all runs of `uid`, of root's of everybody, that have these booleans.
    ///
    /// # Errors
    ///
    /// No run has them all.
    pub(crate) fn with_booleans(
        &self,
        uid: u32,
        booleans: &[(String, bool)],
    ) -> Result<Vec<Arc<Hosted>>, ChangeError> {
        let mut servers: Vec<Arc<Hosted>> = Vec::new();
        for run in self.runs(uid) {
            let server = run.hosted();
            if !server.has_booleans(booleans) {
                continue;
            }
            if !servers.iter().any(|it| Arc::ptr_eq(it, &server)) {
                servers.push(server);
            }
        }
        if servers.is_empty() {
            return Err(ChangeError::NoSuchBooleans);
        }
        Ok(servers)
    }

    /// The server of a run, if it is its alone, and from now on stays so.
    ///
    /// # Errors
    ///
    /// The run has ended.
    pub(crate) fn own(&self, run: &Arc<Run>) -> Result<Option<Arc<Hosted>>, HostError> {
        // A session may outlive its run, and the run's server is then that of others.
        if !self.has(run) {
            return Err(HostError::Ended);
        }
        let hosted = run.hosted();
        let users = self.runs.values().filter(|it| Arc::ptr_eq(&it.hosted(), &hosted)).count();
        if users > 1 || hosted.joining.load(Ordering::Acquire) > 0 {
            return Ok(None);
        }
        // Before the change, so that no run begins with it meanwhile; none is about to.
        hosted.shared.store(false, Ordering::Release);
        Ok(Some(hosted))
    }

    /// Whether it is that run which is registered by its name.
    pub(crate) fn has(&self, run: &Arc<Run>) -> bool {
        self.runs.get(&run.kept.id).is_some_and(|registered| Arc::ptr_eq(registered, run))
    }
}
