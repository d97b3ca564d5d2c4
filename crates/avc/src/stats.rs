//! How many decisions were asked for, and where they were found.

use crate::{
    Source,
    sync::{AtomicU64, Ordering},
};
use std::ops;
use thread_local::ThreadLocal;

/// Decisions that an object manager asked for since its cache was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Answered at the hint.
    pub hint: u64,
    /// Answered elsewhere in the cache.
    pub cache: u64,
    /// Put to the security server, whether it answered or not.
    pub server: u64,
}

impl Stats {
    /// All of them.
    #[must_use]
    pub const fn queries(self) -> u64 {
        self.hint + self.cache + self.server
    }

    /// The share that never reached the security server, 0 to 1; 1 when nothing was asked.
    #[must_use]
    pub fn hit_rate(self) -> f64 {
        match self.queries() {
            0 => 1.0,
            queries => (self.hint + self.cache) as f64 / queries as f64,
        }
    }
}

impl ops::Add for Stats {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            hint: self.hint + other.hint,
            cache: self.cache + other.cache,
            server: self.server + other.server,
        }
    }
}

/// One thread's share of the counters, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Share([AtomicU64; 3]);

impl Share {
    fn stats(&self) -> Stats {
        let read = |source: Source| self.0[source as usize].load(Ordering::Relaxed);
        Stats { hint: read(Source::Hint), cache: read(Source::Cache), server: read(Source::Server) }
    }
}

/// Counters that cost their thread one plain addition.
#[derive(Default)]
pub(crate) struct Counters(ThreadLocal<Share>);

impl Counters {
    /// Counts one decision found at `source`.
    #[inline]
    pub(crate) fn count(&self, source: Source) {
        let counter = &self.0.get_or_default().0[source as usize];
        // INVARIANT: only its thread writes a share, so a load and a store lose nothing. A later thread that
        // inherits the share got it through a lock, and sees the last value.
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The sum over all threads, those that have ended too.
    pub(crate) fn stats(&self) -> Stats {
        self.0.iter().map(Share::stats).fold(Stats::default(), ops::Add::add)
    }
}
