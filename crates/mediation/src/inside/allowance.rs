//! How many requests may come: the time that each takes is charged to no process of the sandbox.

use std::time::{Duration, Instant};

/// Requests that may come at once, and how long it takes until there may be one more.
const BURST: u32 = 64;
const PAUSE: Duration = Duration::from_millis(50);

/// Requests that may still come: compiling takes time that is nobody's in the sandbox.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    /// Since when it is full, or would be.
    full: Option<Instant>,
}

impl Allowance {
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let full = self.full.unwrap_or(now).max(now) + PAUSE;
        let may = full <= now + PAUSE * BURST;
        if may {
            self.full = Some(full);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_in_a_burst_and_then_one_at_a_time() {
        let (mut allowance, now) = (Allowance::default(), Instant::now());
        assert_eq!((0..1000).filter(|_| allowance.take(now)).count(), BURST as usize);
        assert!(allowance.take(now + PAUSE));
        assert!(!allowance.take(now + PAUSE));
    }
}
