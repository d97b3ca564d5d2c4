//! One entry of the cache: a question, its answer, and a sequence lock over both.
//!
//! Readers only load; a reader that meets a writer sees a miss. Writers never wait: who meets
//! another writer gives up, for the entry is only a copy of what the security server knows.

use crate::sync::{AtomicU64, Ordering, fence};
use flask::{AccessVector, Decision, Question, Seqno};

/// A question in the form that slots compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Source SID above target SID; never 0.
    pub(crate) sids: u64,
    /// Number of the class; never 0.
    pub(crate) class: u8,
}

impl From<Question> for Key {
    #[inline]
    fn from(q: Question) -> Self {
        Self { sids: join(q.ssid.get(), q.tsid.get()), class: q.tclass.number() }
    }
}

/// In `meta`: the low byte is the class, then two flags, then the version from bit 16 upwards.
const PERMISSIVE: u64 = 1 << 8;
const BUSY: u64 = 1 << 9;
const VERSION: u64 = 1 << 16;

/// Half a cache line; all zero while empty.
#[derive(Default)]
#[repr(align(32))]
pub(crate) struct Slot {
    meta: AtomicU64,
    sids: AtomicU64,
    /// `allowed` above `auditallow`.
    granted: AtomicU64,
    /// `auditdeny` above `seqno`.
    denied: AtomicU64,
}

impl Slot {
    /// Whether the slot may hold an answer about these SIDs. Only [`Slot::answer`] is sure.
    #[inline]
    pub(crate) fn names(&self, key: Key) -> bool {
        self.sids.load(Ordering::Relaxed) == key.sids
    }

    /// The answer to `key` if it lies here, whole, and is not older than `current`.
    #[inline]
    pub(crate) fn answer(&self, key: Key, current: Seqno) -> Option<Decision> {
        let meta = self.meta.load(Ordering::Acquire);
        let sids = self.sids.load(Ordering::Relaxed);
        let (allowed, auditallow) = split(self.granted.load(Ordering::Relaxed));
        let (auditdeny, seqno) = split(self.denied.load(Ordering::Relaxed));
        // With the writer's release fence: had any load above seen a later write, this one sees its
        // BUSY.
        fence(Ordering::Acquire);
        let whole = self.meta.load(Ordering::Relaxed) == meta;
        let same = sids == key.sids && meta & (BUSY | 0xFF) == u64::from(key.class);
        (whole && same && seqno >= current.0).then_some(Decision {
            allowed: AccessVector(allowed),
            auditallow: AccessVector(auditallow),
            auditdeny: AccessVector(auditdeny),
            permissive: meta & PERMISSIVE != 0,
            seqno: Seqno(seqno),
        })
    }

    /// Whether nothing of use lies here: empty, or older than `current`.
    pub(crate) fn is_free(&self, current: Seqno) -> bool {
        let (_, seqno) = split(self.denied.load(Ordering::Relaxed));
        self.sids.load(Ordering::Relaxed) == 0 || seqno < current.0
    }

    /// How often the slot was written: within a bucket, the least is the oldest entry.
    pub(crate) fn version(&self) -> u64 {
        self.meta.load(Ordering::Relaxed) / VERSION
    }

    /// Replaces what lies here. `false` if another thread is doing so: nothing was written.
    pub(crate) fn write(&self, key: Key, decision: Decision) -> bool {
        let meta = self.meta.load(Ordering::Relaxed);
        let busy = meta | BUSY;
        if meta == busy
            || self.meta.compare_exchange(meta, busy, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return false;
        }
        fence(Ordering::Release);
        self.sids.store(key.sids, Ordering::Relaxed);
        self.granted.store(join(decision.allowed.0, decision.auditallow.0), Ordering::Relaxed);
        self.denied.store(join(decision.auditdeny.0, decision.seqno.0), Ordering::Relaxed);
        let version = (meta & !(VERSION - 1)).wrapping_add(VERSION);
        let permissive = if decision.permissive { PERMISSIVE } else { 0 };
        self.meta.store(version | permissive | u64::from(key.class), Ordering::Release);
        true
    }
}

#[inline]
fn join(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[inline]
fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}
