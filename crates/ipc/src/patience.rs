//! How long to spin before going to sleep.
//!
//! To wake an idle processor takes tens of microseconds, to see a word change on another one a
//! tenth of a microsecond: spinning pays while the other side runs elsewhere and answers soon. It
//! never pays when both share a processor, or when others need this one. Which of these holds is
//! learned from whether it paid lately.

use std::{
    hint::spin_loop,
    time::{Duration, Instant},
};

/// Somewhat longer than it takes to wake an idle processor, so that the other side can wake up
/// meanwhile.
const SPIN: Duration = Duration::from_micros(60);

/// Looks between two looks at the clock.
const LOOKS: u32 = 64;

/// The most that successes can count.
const CREDIT: u32 = 8;

/// One wait in so many spins although it did not pay lately, to learn if it would now.
const PROBE: u32 = 256;

/// What was learned.
pub(crate) struct Patience {
    /// Spins while positive.
    credit: u32,
    /// Waits since it does not.
    waits: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { credit: CREDIT, waits: 0 }
    }
}

impl Patience {
    /// Whether `ready` became true while it paid to look.
    #[inline]
    pub(crate) fn spin(&mut self, ready: impl Fn() -> bool) -> bool {
        if self.credit == 0 {
            self.waits += 1;
            if !self.waits.is_multiple_of(PROBE) {
                return ready();
            }
        }
        let paid = spin(ready);
        self.credit = if paid { (self.credit + 1).min(CREDIT) } else { self.credit / 2 };
        paid
    }
}

/// Looks again and again, for a while.
fn spin(ready: impl Fn() -> bool) -> bool {
    let mut begin = None;
    loop {
        for _ in 0..LOOKS {
            if ready() {
                return true;
            }
            spin_loop();
        }
        let begin = *begin.get_or_insert_with(Instant::now);
        if begin.elapsed() > SPIN {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn who_spins_in_vain_soon_looks_only_once_a_wait() {
        let mut patience = Patience::default();
        let looks = Cell::new(0_u32);
        let look = || {
            looks.set(looks.get() + 1);
            false
        };
        (0..4).for_each(|_| assert!(!patience.spin(look)));
        looks.set(0);
        (0..100).for_each(|_| assert!(!patience.spin(look)));
        assert_eq!(looks.get(), 100);
    }

    #[test]
    fn who_gave_up_spinning_starts_again_when_it_pays() {
        let mut patience = Patience { credit: 0, waits: 0 };
        (0..PROBE).for_each(|_| assert!(patience.spin(|| true)));
        assert!(patience.credit > 0);
    }
}
