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
