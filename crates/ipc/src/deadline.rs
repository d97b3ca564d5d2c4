//! Until when an end of a port waits.

use rustix::event::Timespec;
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// A moment, or never. The clock is read for the first time when somebody asks: a call that is
/// answered at once does not pay for it.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    timeout: Option<Duration>,
    begin: Cell<Option<Instant>>,
}

impl Deadline {
    /// That long from the first question; never for `None`.
    pub(crate) const fn after(timeout: Option<Duration>) -> Self {
        Self { timeout, begin: Cell::new(None) }
    }

    /// Whichever comes first: this one, or `longest` from now.
    pub(crate) fn at_most(&self, longest: Duration) -> Self {
        Self::after(Some(self.left().map_or(longest, |left| left.min(longest))))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// What is left, `None` for ever.
    pub(crate) fn left(&self) -> Option<Duration> {
        let timeout = self.timeout?;
        let begin = self.begin.get().unwrap_or_else(Instant::now);
        self.begin.set(Some(begin));
        Some(timeout.saturating_sub(begin.elapsed()))
    }

    /// What is left, as system calls want it.
    pub(crate) fn timespec(&self) -> Option<Timespec> {
        self.left().and_then(|left| left.try_into().ok())
    }
}
