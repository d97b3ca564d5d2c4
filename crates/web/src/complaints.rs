//! How often a plugin's failures are told: a plugin that fails at each request must not fill a
//! disk, nor hide others' lines.

use crate::clock::passed;
use std::sync::{Mutex, PoisonError};

/// Lines at once.
const BURST: u32 = 10;
/// Milliseconds after which there may be one more.
const EVERY_MS: u32 = 1000;

/// The lines about one plugin.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Lines that were told and not yet forgotten.
    told: u32,
    /// When one of them is forgotten next.
    forgets: u32,
    /// Failures that were not told since the last line.
    untold: u64,
}

impl Complaints {
    /// Whether a failure at `now` is told: if it is, how many were not since the last one that was.
    pub(crate) fn take(&self, now: u32) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.told > 0 && passed(state.forgets, now) {
            let forgotten = 1 + now.wrapping_sub(state.forgets) / EVERY_MS;
            state.told = state.told.saturating_sub(forgotten);
            state.forgets = now.wrapping_add(EVERY_MS);
        }
        if state.told == BURST {
            state.untold += 1;
            return None;
        }
        if state.told == 0 {
            state.forgets = now.wrapping_add(EVERY_MS);
        }
        state.told += 1;
        Some(std::mem::take(&mut state.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_told_then_one_in_a_second_with_the_count_of_the_others() {
        let complaints = Complaints::default();
        // The clock may wrap in between.
        let begin = u32::MAX - 1500;
        let told = |from: u32, to: u32| -> Vec<u64> {
            (from..to).filter_map(|ms| complaints.take(begin.wrapping_add(ms))).collect()
        };
        assert_eq!(told(0, 1000), [0; 10]);
        assert_eq!(told(1000, 2000), [990]);
        assert_eq!(told(2000, 3000), [999]);
        assert_eq!(told(60_000, 60_100), [999, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
