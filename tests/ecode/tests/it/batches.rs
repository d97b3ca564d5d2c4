//! Many random programs in batches, on every processor.

use std::{
    env,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Programs of a batch: one text for gcc, whose start costs as much as some programs.
const BATCH: usize = 100;

/// One batch of random programs.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    /// What its programs follow from.
    pub(crate) seed: u64,
    /// How many there are.
    pub(crate) size: usize,
    /// One in twenty goes through gcc's optimiser and sanitizers as well, which take ten times as
    /// long as all the rest: that the generator keeps to what C defines does not depend on a single
    /// program.
    pub(crate) is_sample: bool,
}

/// Runs `check` on `ECODE_PROGRAMS` programs (`usual` if that is not set) from `ECODE_SEED` on; how
/// many there were.
pub(crate) fn run(usual: u64, check: impl Fn(Batch) + Sync) -> usize {
    let number = |name: &str, default: u64| {
        env::var(name).map_or(default, |value| value.parse().expect("it is a number"))
    };
    let (count, seed) =
        (number("ECODE_PROGRAMS", usual) as usize, number("ECODE_SEED", 20_261_121));
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    if first >= count {
                        break;
                    }
                    let (size, is_sample) =
                        (BATCH.min(count - first), (first / BATCH).is_multiple_of(20));
                    check(Batch { seed: seed + first as u64, size, is_sample });
                }
            });
        }
    });
    count
}

impl Batch {
    /// What the seed of its random numbers is.
    pub(crate) fn random(self) -> u64 {
        self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }
}
