//! A security server that the daemon serves: what it gives out is kept before anybody hears of it.

use crate::state::{SavedServer, State, StateError};
use daemon_client::Policy;
use flask::{
    AccessVector, Classes, ClassesError, Decision, Explanation, InitialSid, LabelError, LabelRules,
    Question, SecurityServer, Seqno, Sid, Unreachable,
};
use security_server::{
    BoolId, LabelBudget, LoadError, PolicyErrors, Server, UnknownBoolean, cil, policy,
};
use server_port::Members;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, TryLockError,
    atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
};

/// SIDs that one server gives out, and the longest context that a client may ask for.
const MOST_SIDS: u32 = 1 << 16;
const MOST_CONTEXT_BYTES: usize = 4096;

/// Bytes that one policy may take when it is compiled: a short text can stand for much.
const MOST_COMPILED_BYTES: usize = 128 << 20;

/// A security server that runs use, with those who follow its policy.
pub(crate) struct Hosted {
    pub(crate) id: i64,
    /// The user whose runs may use it.
    pub(crate) owner: u32,
    /// Registrations that have it and are no runs yet. Raised with the registry's lock held.
    pub(crate) joining: AtomicUsize,
    pub(crate) digest: Mutex<[u8; 32]>,
    /// Bytes of its policy's text, and about those of what is compiled from it.
    size: AtomicUsize,
    /// As its policy is at the beginning: other runs with the same may use it, too.
    pub(crate) shared: AtomicBool,
    pub(crate) members: Arc<Members>,
    server: Server,
    /// Of its owner.
    labels: Arc<LabelBudget>,
    state: Arc<State>,
    /// The last SID whose context is kept.
    kept: AtomicU32,
    /// Held by whoever keeps contexts, and by whoever changes the policy.
    keeping: Mutex<()>,
    changing: Mutex<()>,
}

/// Why a policy is not served, or not changed. What was before stays in force.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    #[error("the policy cannot be read")]
    Unreadable,
    #[error("{0}")]
    Policy(#[from] PolicyErrors),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Classes(#[from] ClassesError),
    #[error("a new policy is asked about the classes of the one before; this one brings others")]
    OtherClasses,
    #[error(transparent)]
    Boolean(#[from] UnknownBoolean),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("the run has ended")]
    Ended,
}

/// What equal policies have in common, as they are sent.
pub(crate) fn digest(policy: &[u8]) -> [u8; 32] {
    blake3::hash(policy).into()
}

fn compile(bytes: &[u8]) -> Result<(policy::Policy, Classes), HostError> {
    let policy = Policy::from_bytes(bytes).ok_or(HostError::Unreadable)?;
    let classes = Classes::new(policy.classes)?;
    Ok((cil::compile_within(&policy.files, MOST_COMPILED_BYTES)?, classes))
}

impl Hosted {
    /// Serves a policy that was not served before.
    pub(crate) fn new(
        state: &Arc<State>,
        (owner, labels): (u32, Arc<LabelBudget>),
        (digest, bytes): ([u8; 32], &[u8]),
    ) -> Result<Arc<Self>, HostError> {
        let (policy, classes) = compile(bytes)?;
        let size = bytes.len() + policy.bytes();
        let server = Server::with_classes(policy, classes)?.within(&labels)?;
        let saved = server.save();
        let id = state.add_server((digest, bytes), true, &saved)?;
        Ok(Self::make(state, (id, owner, labels), (digest, size), true, server))
    }

    /// Serves what was served before the daemon ended.
    pub(crate) fn restore(
        state: &Arc<State>,
        (owner, labels): (u32, Arc<LabelBudget>),
        kept: &SavedServer,
    ) -> Result<Arc<Self>, HostError> {
        let (policy, classes) = compile(&kept.policy)?;
        let size = kept.policy.len() + policy.bytes();
        let server = Server::restore_with(policy, &kept.saved, classes)?.within(&labels)?;
        let id = (kept.id, owner, labels);
        Ok(Self::make(state, id, (kept.digest, size), kept.shared, server))
    }

    /// The same for `run` alone.
    pub(crate) fn fork(&self, run: &str) -> Result<Arc<Self>, HostError> {
        let digest = *self.digest();
        let labels = Arc::clone(&self.labels);
        let server = self.server.fork().within(&labels)?;
        let id = self.state.fork_server(digest, &server.save(), run)?;
        let size = self.size();
        Ok(Self::make(&self.state, (id, self.owner, labels), (digest, size), false, server))
    }

    fn make(
        state: &Arc<State>,
        (id, owner, labels): (i64, u32, Arc<LabelBudget>),
        (digest, size): ([u8; 32], usize),
        shared: bool,
        server: Server,
    ) -> Arc<Self> {
        let saved = server.save();
        Arc::new(Self {
            id,
            owner,
            joining: AtomicUsize::new(0),
            digest: Mutex::new(digest),
            size: AtomicUsize::new(size),
            shared: AtomicBool::new(shared),
            members: Members::new(saved.seqno),
            server,
            labels,
            state: Arc::clone(state),
            kept: AtomicU32::new(InitialSid::COUNT + saved.contexts.len() as u32),
            keeping: Mutex::new(()),
            changing: Mutex::new(()),
        })
    }

    pub(crate) fn digest(&self) -> MutexGuard<'_, [u8; 32]> {
        self.digest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that its policy takes, about.
    pub(crate) fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Whether its policy has all of these booleans.
    pub(crate) fn has_booleans(&self, booleans: &[(String, bool)]) -> bool {
        let engine = self.server.engine();
        booleans.iter().all(|(name, _)| engine.policy().booleans.contains_key(name.as_str()))
    }

    /// Every boolean.
    fn booleans(&self) -> Vec<(String, bool)> {
        self.some_booleans(usize::MAX).0
    }

    /// The first booleans whose names have so many bytes together, and how many more there are.
    pub(crate) fn some_booleans(&self, most: usize) -> (Vec<(String, bool)>, usize) {
        let engine = self.server.engine();
        let names = engine.policy().booleans.keys();
        let (all, mut left) = (names.len(), most);
        let fits = |name: &&str| {
            let fits = name.len() <= left;
            left = left.saturating_sub(name.len());
            fits
        };
        let shown: Vec<_> = names
            .map(|name| &**name)
            .take_while(fits)
            .enumerate()
            .map(|(n, name)| (name.to_owned(), engine.boolean(BoolId::at(n))))
            .collect();
        let more = all - shown.len();
        (shown, more)
    }

    /// Bytes of the labels that it has given out.
    pub(crate) fn label_bytes(&self) -> usize {
        self.server.label_bytes()
    }

    /// The policy state in force.
    pub(crate) fn state_number(&self) -> Seqno {
        self.server.seqno().unwrap_or_default()
    }

    /// Held over a change and until every member has applied it: changes come one after the other.
    pub(crate) fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, if no change is under way.
    pub(crate) fn try_change(&self) -> Option<MutexGuard<'_, ()>> {
        match self.changing.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A server that nobody has yet, as this one would be with these booleans.
    pub(crate) fn with_booleans(&self, booleans: &[(String, bool)]) -> Result<Server, HostError> {
        let booleans: Vec<_> = booleans.iter().map(|(name, on)| (name.as_str(), *on)).collect();
        Ok(self.server.with_booleans(&booleans)?)
    }

    /// A server that nobody has yet, as this one would be with that policy; about how many bytes
    /// what is compiled from it takes.
    pub(crate) fn with_policy(&self, bytes: &[u8]) -> Result<(Server, usize), HostError> {
        let proposed = self.server.fork();
        let policy = self.compile_next(bytes)?.0;
        let size = policy.bytes();
        proposed.reload(policy)?;
        Ok((proposed, size))
    }

    /// A new policy with the values of the booleans that both have, and those.
    fn compile_next(
        &self,
        bytes: &[u8],
    ) -> Result<(policy::Policy, Vec<(String, bool)>), HostError> {
        let (mut policy, classes) = compile(bytes)?;
        if classes != *self.server.classes() {
            return Err(HostError::OtherClasses);
        }
        let mut booleans = self.booleans();
        booleans.retain(|(name, _)| policy.booleans.contains_key(name.as_str()));
        for (name, on) in &booleans {
            policy.booleans.insert(name.as_str().into(), *on);
        }
        Ok((policy, booleans))
    }

    /// Changes booleans. The caller holds [`Hosted::change`].
    pub(crate) fn set_booleans(&self, booleans: &[(String, bool)]) -> Result<Seqno, HostError> {
        let engine = self.server.engine();
        let known = |name: &str| engine.policy().booleans.contains_key(name);
        if let Some((name, _)) = booleans.iter().find(|(name, _)| !known(name)) {
            return Err(UnknownBoolean::of(name, engine.policy()).into());
        }
        let next = Seqno(self.state_number().0 + 1);
        self.shared.store(false, Ordering::Release);
        self.state.set_booleans(self.id, next, booleans)?;
        let booleans: Vec<_> = booleans.iter().map(|(name, on)| (name.as_str(), *on)).collect();
        Ok(self.server.set_booleans(&booleans)?)
    }

    /// Replaces the policy. Booleans that both policies have keep their values. The caller holds
    /// [`Hosted::change`].
    pub(crate) fn set_policy(&self, bytes: &[u8]) -> Result<Seqno, HostError> {
        let (policy, booleans) = self.compile_next(bytes)?;
        // Whatever it would be refused for is found before anything is kept.
        self.server.fork().reload(policy.clone())?;
        let digest = digest(bytes);
        let next = Seqno(self.state_number().0 + 1);
        self.shared.store(false, Ordering::Release);
        self.state.set_policy(self.id, next, (digest, bytes), &booleans)?;
        *self.digest() = digest;
        self.size.store(bytes.len() + policy.bytes(), Ordering::Relaxed);
        Ok(self.server.reload(policy)?)
    }

    /// Keeps the contexts of all SIDs that were given out so far.
    fn keep(&self) -> Result<(), Unreachable> {
        let _keeping = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = self.kept.load(Ordering::Acquire);
        let contexts = self.server.contexts_after(kept);
        self.state.add_contexts(self.id, kept, &contexts).map_err(|_| Unreachable)?;
        self.kept.store(kept + contexts.len() as u32, Ordering::Release);
        Ok(())
    }

    fn kept(
        &self,
        sid: impl FnOnce(&Server) -> Result<Sid, LabelError>,
    ) -> Result<Sid, LabelError> {
        if self.kept.load(Ordering::Acquire) >= MOST_SIDS {
            return Err(LabelError::Unreachable);
        }
        let sid = sid(&self.server)?;
        if sid.get() > self.kept.load(Ordering::Acquire) {
            self.keep()?;
        }
        Ok(sid)
    }
}

impl SecurityServer for Hosted {
    fn seqno(&self) -> Result<Seqno, Unreachable> {
        self.server.seqno()
    }

    fn compute_av(&self, q: Question) -> Result<Decision, Unreachable> {
        self.server.compute_av(q)
    }

    fn compute_av_before(&self, q: Question) -> Result<Decision, Unreachable> {
        self.server.compute_av_before(q)
    }

    fn compute_create(&self, q: Question, name: Option<&str>) -> Result<Sid, LabelError> {
        self.kept(|server| server.compute_create(q, name))
    }

    fn compute_member(&self, q: Question) -> Result<Sid, LabelError> {
        self.kept(|server| server.compute_member(q))
    }

    fn context_to_sid(&self, context: &str) -> Result<Sid, LabelError> {
        if context.len() > MOST_CONTEXT_BYTES {
            return Err(LabelError::InvalidContext("a context of more than 4096 bytes".into()));
        }
        self.kept(|server| server.context_to_sid(context))
    }

    fn sid_to_context(&self, sid: Sid) -> Result<String, LabelError> {
        self.server.sid_to_context(sid)
    }

    fn label_rules(&self) -> Result<LabelRules, Unreachable> {
        let rules = self.server.label_rules()?;
        self.keep()?;
        Ok(rules)
    }

    fn explain(&self, q: Question, requested: AccessVector) -> Result<Explanation, Unreachable> {
        self.server.explain(q, requested)
    }
}
