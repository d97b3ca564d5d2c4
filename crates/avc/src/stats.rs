//! How many decisions were asked for, and where they were found.

use std::ops;

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
