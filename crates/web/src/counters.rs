//! What was done, counted by each worker for itself and added up by whoever asks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Service times are counted by powers of two of microseconds, up to half a minute.
pub(crate) const BUCKETS: usize = 26;

/// A number that one thread changes and others read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Only the thread that owns it calls this: two that do lose counts.
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What one worker counts. Apart from others' by more than a line of a processor's cache.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) accepted: Count,
    pub(crate) refused: Count,
    pub(crate) open: Count,
    pub(crate) requests: Count,
    /// By hundreds of the status.
    pub(crate) statuses: [Count; 6],
    pub(crate) sent_bytes: Count,
    pub(crate) service_us: Count,
    pub(crate) times: [Count; BUCKETS],
    pub(crate) timeouts: Count,
    pub(crate) log_lost: Count,
}

impl Counters {
    /// Takes note of an answer.
    pub(crate) fn answered(&self, status: u16, bytes: u64, us: u64) {
        self.requests.add(1);
        self.statuses[usize::from(status / 100).min(5)].add(1);
        self.sent_bytes.add(bytes);
        self.service_us.add(us);
        let bucket = (u64::BITS - us.leading_zeros()) as usize;
        self.times[bucket.min(BUCKETS - 1)].add(1);
    }
}

/// What one worker counts of one plugin.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct PluginCounters {
    pub(crate) calls: Count,
    pub(crate) faults: Count,
    pub(crate) denied: Count,
    pub(crate) nanos: Count,
    pub(crate) bytes_in: Count,
    pub(crate) bytes_out: Count,
}
