//! Security identifiers.

use std::{fmt, num::NonZeroU32};

include!(concat!(env!("OUT_DIR"), "/initial_sids.rs"));

/// A small integer that stands for a security context inside one security server. Grants nothing by
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sid(NonZeroU32);

impl Sid {
    /// The SID of that number; `None` for 0.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// Its number, at least 1.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl InitialSid {
    /// How many there are: other SIDs have greater numbers.
    pub const COUNT: u32 = INITIAL_SIDS.len() as u32;

    /// Every initial SID, in the order of `policy/initial_sids`.
    pub fn all() -> impl Iterator<Item = Self> {
        INITIAL_SIDS.iter().map(|entry| entry.0)
    }

    /// The name as policies spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        INITIAL_SIDS[self as usize - 1].1
    }

    /// The initial SID of that name, if there is one.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        INITIAL_SIDS.iter().find(|entry| entry.1 == name).map(|entry| entry.0)
    }
}

impl From<InitialSid> for Sid {
    fn from(initial: InitialSid) -> Self {
        // Initial SIDs are numbered from 1, so this is never the fallback.
        Self::new(initial as u32).unwrap_or(Self(NonZeroU32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_sids_are_numbered_from_one_without_a_gap() {
        let numbers: Vec<u32> = InitialSid::all().map(|sid| Sid::from(sid).get()).collect();
        assert_eq!(numbers, (1..=InitialSid::COUNT).collect::<Vec<_>>());
        assert_eq!(InitialSid::by_name("unlabeled"), Some(InitialSid::Unlabeled));
    }
}
