//! Runs inside of the run: a process asks for a policy that bounds what it may do from its next
//! exec on.
//!
//! ```text
//!  open("/proc/self/attr/dewar/exec") ─▶ gate ── a stream socket ─▶ the process
//!      a policy ─▶ Inside::admit: compiled, compared with what the kernel was told ─▶ a layer
//!  execve ─▶ decided with the label in that layer ─▶ at its end, the process has it
//! ```
//!
//! The process that enters is the one that has opened the file, whoever writes to the socket. It
//! goes to where it may do less, never more ([`policy_stack`]), and nothing leads back.

mod ending;
mod facets;
mod request;

pub use ending::{EndLayer, end_layer};
pub use facets::{Facet, Facets};
pub use request::{Request, request};

use crate::{
    call::Asker,
    state::MonitorState,
    subject::{LabelGeneration, label_generation, label_of},
};
use confine::{Conflict, KernelPolicy, Settled};
use flask::{InitialSid, SecurityServer, Sid};
use inode_labels::{Labels, Private};
use labelling::Networks;
use policy_stack::{Compound, LabelView, Layer, Stack, is_compound};
use rustix::io::{Errno, Result};
use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
};

/// Runs inside at once, below each other or beside.
const MOST_LAYERS: usize = 32;

/// Bytes of the policies of all layers: compiled, they take ten times as much.
const MOST_BYTES: usize = 8 << 20;

/// Layers, and bytes of theirs, from which on those are looked for that no process is under: that
/// looks at all processes.
const MANY_LAYERS: usize = MOST_LAYERS / 2;
const MANY_BYTES: usize = MOST_BYTES / 2;

/// Runs inside of each other, as bounds of types can be (`MAX_BOUNDS` of the security server).
const MOST_BELOW: usize = 4;

/// A policy for a run inside.
pub struct InnerPolicy {
    /// What its profile is called; of letters, digits, `-` and `_`.
    pub name: String,
    /// Decides by it.
    pub server: Arc<dyn SecurityServer>,
    /// What it hides must not show by its name either.
    pub strict: bool,
}

/// Why a run inside is not begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InsideError {
    /// What was sent is no policy.
    #[error("{0}")]
    Policy(String),
    /// The kernel was told otherwise when the run began.
    #[error(transparent)]
    Settled(#[from] Conflict),
    /// The policy was not read.
    #[error(transparent)]
    Read(#[from] confine::ReadError),
    /// There are too many.
    #[error("{MOST_LAYERS} runs are inside already; wait for one to end")]
    TooMany,
    /// Their policies are too long, all together.
    #[error("the runs that are inside already have long policies; wait for one to end")]
    TooLong,
    /// They are too deep.
    #[error("runs can be {MOST_BELOW} deep inside of a run, and this would be one more")]
    TooDeep,
    /// The process is not the one that has asked any more.
    #[error("the process that asked has ended, or has entered another domain")]
    Gone,
    /// The domains of processes cannot be told apart.
    #[error(
        "processes of this run cannot be told apart: the hard limit on file locks must be unlimited where it is started \
         (`ulimit -H -x`)"
    )]
    Unmarked,
    /// Nothing was sent in time.
    #[error("no policy came: {0}")]
    Request(#[from] std::io::Error),
}

/// Makes a policy of what a process has sent.
pub type CompileInner =
    dyn Fn(&[u8]) -> std::result::Result<InnerPolicy, InsideError> + Send + Sync;

/// Who may enter which domain at its next exec.
#[derive(Clone, Copy, Debug)]
struct Pending {
    generation: LabelGeneration,
    sid: Sid,
    layer: u32,
}

/// The process that has asked.
#[derive(Clone, Copy, Debug)]
struct Requester {
    pid: u32,
    generation: LabelGeneration,
    ssid: Sid,
}

/// What runs inside begin and end by.
struct Serving {
    compile: Box<CompileInner>,
    end: Box<EndLayer>,
}

/// The runs inside of a run.
pub struct Inside {
    /// Their policies, above the one of the run around them.
    pub stack: Arc<Stack>,
    settled: Settled,
    private: Private,
    serving: OnceLock<Serving>,
    /// One request is worked on at a time. The number of the next layer.
    next: Mutex<u32>,
    /// The number of the last layer: the end of a run waits for nobody who begins one.
    begun: AtomicU32,
    pending: Mutex<HashMap<u32, Pending>>,
    /// Some process may enter a domain.
    waits: AtomicBool,
    /// The policy of the run around is not the one that it was started with.
    changed: AtomicBool,
    /// Requests that are not answered yet.
    open: AtomicUsize,
    allowance: Mutex<request::Allowance>,
}

impl Inside {
    /// None yet: `stack` will bound them, and what was `settled` at the start, and what is
    /// `private` in the view.
    pub fn new(stack: Arc<Stack>, settled: Settled, private: Private) -> Self {
        Self {
            stack,
            settled,
            private,
            serving: OnceLock::new(),
            next: Mutex::new(1),
            begun: AtomicU32::new(0),
            pending: Mutex::default(),
            waits: AtomicBool::new(false),
            changed: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            allowance: Mutex::default(),
        }
    }

    /// From now on runs inside can begin.
    pub fn serve(&self, compile: Box<CompileInner>, end: Box<EndLayer>) {
        // It is called once.
        let _ = self.serving.set(Serving { compile, end });
    }

    /// How many runs have begun inside.
    pub fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    /// The policy of the run around changes.
    pub fn policy_changes(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// Whether the run around all may execute at `path`, and nothing was there when the kernel was
    /// told what may be executed.
    pub fn was_missing(&self, path: &Path) -> bool {
        self.settled.was_missing(path)
    }

    /// Whether it is decided what datagrams of the run around reach.
    #[must_use]
    pub fn datagrams_are_decided(&self) -> bool {
        self.settled.datagrams_are_decided()
    }

    /// Whether what a run inside hides does not even show by its name.
    fn hides_names(&self) -> bool {
        self.settled.looks_are_decided()
    }

    /// Lets `who` enter, at its next exec, what `bytes` stand for; the name of its domain.
    fn admit(&self, who: Requester, bytes: &[u8]) -> std::result::Result<String, InsideError> {
        let serving = self.serving.get().ok_or(InsideError::Gone)?;
        let mut next = lock(&self.next);
        let parts = self.stack.parts(who.ssid).ok_or(InsideError::Gone)?;
        if parts.inner.len() >= MOST_BELOW {
            return Err(InsideError::TooDeep);
        }
        if self.stack.count() >= MOST_LAYERS {
            return Err(InsideError::TooMany);
        }
        if self.stack.bytes() + bytes.len() > MOST_BYTES {
            return Err(InsideError::TooLong);
        }
        let InnerPolicy { name, server, strict } = (serving.compile)(bytes)?;
        let policy = KernelPolicy::new(&*server)?;
        self.settled.admits_inside(&*server, &policy, strict)?;
        let KernelPolicy { labels, rules, .. } = policy;
        let number = *next;
        *next += 1;
        self.begun.store(number, Ordering::Relaxed);
        self.stack.add(Arc::new(Layer {
            number,
            name,
            server,
            labels: Labels::new(rules).in_view(self.private.clone()),
            networks: Networks::new(&labels),
            bytes: bytes.len(),
        }));
        let mut inner = parts.inner;
        inner.push((number, InitialSid::Init.into()));
        let sid = self.stack.compose(Compound { inner, ..parts }).ok_or(InsideError::TooMany)?;
        let pending = Pending { generation: who.generation, sid, layer: number };
        lock(&self.pending).insert(who.pid, pending);
        self.waits.store(true, Ordering::Release);
        self.stack.sid_to_context(sid).map_err(|_| InsideError::Gone)
    }

    /// The domain that the caller enters by this exec, if it has asked for one.
    pub fn entered_by(&self, asker: Asker<'_>) -> Result<Option<Sid>> {
        if !self.waits.load(Ordering::Acquire) {
            return Ok(None);
        }
        let pid = asker.caller.identity()?.pid;
        let Some(pending) = lock(&self.pending).get(&pid).copied() else { return Ok(None) };
        // Else it is another process with its number.
        let is_same = label_generation(asker.state, pid)? == pending.generation;
        Ok(is_same.then_some(pending.sid))
    }

    /// A process has entered, whose program has not run yet: whatever comes of it ends with it.
    ///
    /// # Errors
    ///
    /// What keeps that from being seen to. The process must not go on.
    pub fn has_entered(self: &Arc<Self>, pid: u32) -> Result<()> {
        let entered = {
            let mut pending = lock(&self.pending);
            let entered = pending.remove(&pid).ok_or(Errno::SRCH)?;
            self.waits.store(!pending.is_empty(), Ordering::Release);
            entered
        };
        ending::end_with(self, pid, entered.layer)
    }

    /// Forgets the layers that no process is under, nor about to enter.
    fn collect(&self, state: &MonitorState) {
        if self.stack.count() < MANY_LAYERS && self.stack.bytes() < MANY_BYTES {
            return;
        }
        // Who begins a layer meanwhile would lose it, and may take its time.
        let Ok(_next) = self.next.try_lock() else { return };
        let mut used: HashSet<u32> = HashSet::new();
        {
            let mut pending = lock(&self.pending);
            // Whoever was promised to run in there runs nothing elsewhere, however long it takes.
            pending.retain(|pid, it| label_generation(state, *pid) == Ok(it.generation));
            used.extend(pending.values().map(|it| it.layer));
            self.waits.store(!pending.is_empty(), Ordering::Release);
        }
        // Twice: a process that is born while the first list is made has a parent in it, or is in
        // the second.
        for _ in 0..2 {
            let Ok(pids) = state.targets.tree.proc.pids() else { return };
            for pid in pids.into_iter().filter(|pid| state.targets.tree.is_inside(*pid)) {
                let parts = label_of(state, pid).ok().and_then(|sid| self.stack.parts(sid));
                used.extend(parts.into_iter().flat_map(|it| it.inner).map(|(number, _)| number));
            }
        }
        self.stack.keep(&|number| used.contains(&number));
    }
}

impl Asker<'_> {
    /// Whether the subject is of a run inside.
    pub fn is_inside(&self) -> bool {
        is_compound(self.ssid)
    }

    /// The labels of files as the subject sees them.
    pub fn labels(&self) -> LabelView<'_> {
        LabelView::new(&self.state.labels, &self.state.inside.stack, self.ssid)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
