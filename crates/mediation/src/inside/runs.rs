//! The runs inside of a run: their policies, and who is about to enter one.

use super::allowance::Allowance;
use crate::subject::LabelGeneration;
use confine::{Conflict, KernelPolicy, Settled};
use flask::{InitialSid, SecurityServer, Sid};
use inode_labels::{Labels, Private};
use labelling::Networks;
use policy_stack::{Compound, Layer, Stack};
use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
};

/// Runs inside at once, below each other or beside.
pub(super) const MOST_LAYERS: usize = 32;

/// Bytes that the policies of all layers take, about, when they are compiled.
pub(super) const MOST_BYTES: usize = 80 << 20;

/// Compiled, a text takes ten times as much at least.
pub(super) const TIMES: usize = 10;

/// Runs inside of each other, as bounds of types can be (`MAX_BOUNDS` of the security server).
pub(super) const MOST_BELOW: usize = 4;

/// A policy for a run inside.
pub struct InnerPolicy {
    /// What its profile is called; of letters, digits, `-` and `_`.
    pub name: String,
    /// Decides by it.
    pub server: Arc<dyn SecurityServer>,
    /// Bytes that it takes when it is compiled, about, aside from what grows with its text.
    pub bytes: usize,
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

/// Makes a policy, of no more than about so many bytes, of what a process has sent.
pub type CompileInner =
    dyn Fn(&[u8], usize) -> std::result::Result<InnerPolicy, InsideError> + Send + Sync;

/// Ends all processes under the layer of a number.
pub type EndLayer = dyn Fn(u32) + Send + Sync;

/// Who may enter which domain at its next exec.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) generation: LabelGeneration,
    pub(super) sid: Sid,
    pub(super) layer: u32,
}

/// The process that has asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requester {
    pub(super) pid: u32,
    pub(super) generation: LabelGeneration,
    pub(super) ssid: Sid,
}

/// What runs inside begin and end by.
pub(super) struct Serving {
    pub(super) compile: Box<CompileInner>,
    pub(super) end: Box<EndLayer>,
}

/// The runs inside of a run.
pub struct Inside {
    /// Their policies, above the one of the run around them.
    pub stack: Arc<Stack>,
    pub(super) settled: Settled,
    pub(super) private: Private,
    pub(super) serving: OnceLock<Serving>,
    /// One request is worked on at a time. The number of the next layer.
    pub(super) next: Mutex<u32>,
    /// The number of the last layer: the end of a run waits for nobody who begins one.
    pub(super) begun: AtomicU32,
    pub(super) pending: Mutex<HashMap<u32, Pending>>,
    /// Some process may enter a domain.
    pub(super) waits: AtomicBool,
    /// The policy of the run around is not the one that it was started with.
    pub(super) changed: AtomicBool,
    /// Requests that are not answered yet.
    pub(super) open: AtomicUsize,
    pub(super) allowance: Mutex<Allowance>,
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
    pub(super) fn hides_names(&self) -> bool {
        self.settled.looks_are_decided()
    }

    /// Lets `who` enter, at its next exec, what `bytes` stand for; the name of its domain.
    pub(super) fn admit(
        &self,
        who: Requester,
        bytes: &[u8],
    ) -> std::result::Result<String, InsideError> {
        let serving = self.serving.get().ok_or(InsideError::Gone)?;
        let mut next = lock(&self.next);
        let parts = self.stack.parts(who.ssid).ok_or(InsideError::Gone)?;
        if parts.inner.len() >= MOST_BELOW {
            return Err(InsideError::TooDeep);
        }
        if self.stack.count() >= MOST_LAYERS {
            return Err(InsideError::TooMany);
        }
        let left = MOST_BYTES.checked_sub(self.stack.bytes() + TIMES * bytes.len());
        let left = left.ok_or(InsideError::TooLong)?;
        let policy = (serving.compile)(bytes, left)?;
        let InnerPolicy { name, server, bytes: compiled, strict } = policy;
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
            bytes: TIMES * bytes.len() + compiled,
        }));
        let mut inner = parts.inner;
        inner.push((number, InitialSid::Init.into()));
        let sid = self.stack.compose(Compound { inner, ..parts }).ok_or(InsideError::TooMany)?;
        let pending = Pending { generation: who.generation, sid, layer: number };
        lock(&self.pending).insert(who.pid, pending);
        self.waits.store(true, Ordering::Release);
        self.stack.sid_to_context(sid).map_err(|_| InsideError::Gone)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
