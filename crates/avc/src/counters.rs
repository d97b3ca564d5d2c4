//! Counters that cost their thread one plain addition, and no other thread anything.
//!
//! Each running thread leases the number of a share; every cache has an array of shares. The lease
//! ends with the thread, and the next thread goes on counting where it left off. Threads that find
//! every number leased count in one more share, together, by locked additions.

use crate::{Source, Stats};
use std::{
    cell::Cell,
    ops::Add,
    sync::atomic::{AtomicU64, Ordering},
};

/// Shares that threads have for themselves: the bits of [`LEASED`].
const OWNED: usize = u64::BITS as usize;
/// The number of the share for all other threads.
const COMMON: usize = OWNED;
/// What a thread has before it counts for the first time.
const UNKNOWN: usize = OWNED + 1;

/// Bit n is set while a thread has share n.
static LEASED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// This thread's share. Has no destructor, so that reading it is one load.
    static SHARE: Cell<usize> = const { Cell::new(UNKNOWN) };
    static LEASE: Lease = Lease::take();
}

/// The right to a share; given back when the thread ends.
struct Lease(usize);

impl Lease {
    fn take() -> Self {
        let lowest_free = |leased: u64| (leased != u64::MAX).then(|| leased | (leased + 1));
        let before = LEASED.fetch_update(Ordering::Acquire, Ordering::Relaxed, lowest_free);
        Self(before.map_or(COMMON, |leased| leased.trailing_ones() as usize))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        SHARE.set(COMMON);
        if self.0 < OWNED {
            LEASED.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

/// One thread's counts, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Share([AtomicU64; 3]);

impl Share {
    fn stats(&self) -> Stats {
        let read = |source: Source| self.0[source as usize].load(Ordering::Relaxed);
        Stats { hint: read(Source::Hint), cache: read(Source::Cache), server: read(Source::Server) }
    }
}

/// The counters of one cache: 8 KiB.
pub(crate) struct Counters(Box<[Share; OWNED + 1]>);

impl Default for Counters {
    fn default() -> Self {
        Self(Box::new(std::array::from_fn(|_| Share::default())))
    }
}

impl Counters {
    /// Counts one decision found at `source`.
    #[inline]
    pub(crate) fn count(&self, source: Source) {
        self.add(source, 1);
    }

    /// Counts `count` decisions found at `source`.
    #[inline]
    pub(crate) fn add(&self, source: Source, count: u64) {
        let share = SHARE.get();
        if share < OWNED {
            let counter = &self.0[share].0[source as usize];
            // INVARIANT: one running thread has the share (`LEASED`), so nothing is lost between
            // load and store. Giving it back releases what was counted to the next thread, which
            // acquires it.
            counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
        } else {
            self.add_without_share(source, count);
        }
    }

    /// The sum over all threads, those that have ended too.
    pub(crate) fn stats(&self) -> Stats {
        self.0.iter().map(Share::stats).fold(Stats::default(), Add::add)
    }

    #[cold]
    fn add_without_share(&self, source: Source, count: u64) {
        if SHARE.get() == UNKNOWN {
            SHARE.set(LEASE.try_with(|lease| lease.0).unwrap_or(COMMON));
            return self.add(source, count);
        }
        self.0[COMMON].0[source as usize].fetch_add(count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn no_count_is_lost_with_more_threads_than_shares() {
        let counters = Counters::default();
        let (threads, each) = (3 * OWNED, 1000);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..each).for_each(|_| counters.count(Source::Cache)));
            }
        });
        assert_eq!(counters.stats(), Stats { cache: (threads * each) as u64, ..Stats::default() });
    }

    #[test]
    fn what_is_counted_at_once_counts_as_often() {
        let counters = Counters::default();
        counters.add(Source::Hint, 41);
        counters.count(Source::Hint);
        assert_eq!(counters.stats(), Stats { hint: 42, ..Stats::default() });
    }

    #[test]
    fn more_leases_than_shares_are_for_the_common_one() {
        let leases: Vec<Lease> = (0..=OWNED).map(|_| Lease::take()).collect();
        assert_eq!(leases.last().map(|lease| lease.0), Some(COMMON));
    }

    #[test]
    fn a_share_is_given_back_when_its_thread_ends() {
        let counters = Counters::default();
        for _ in 0..10 * OWNED {
            thread::scope(|scope| {
                scope.spawn(|| counters.count(Source::Hint));
            });
        }
        assert_eq!(counters.stats().hint, 10 * OWNED as u64);
        assert_ne!(LEASED.load(Ordering::Relaxed), u64::MAX);
    }
}
