//! Ids of runs.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Of these, no two are easily taken for each other.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

const LENGTH: usize = 8;

/// Whether a text looks like the id of a run.
#[must_use]
pub fn is_id(text: &str) -> bool {
    text.len() == LENGTH && text.bytes().all(|byte| LETTERS.contains(&byte))
}

/// An id that no other run has: eight letters and digits.
///
/// # Errors
///
/// The kernel has no random numbers.
pub fn new_id() -> io::Result<String> {
    let mut bytes = [0; LENGTH];
    // A request as short as this is answered in full.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_short_and_differ() {
        let ids: HashSet<String> = (0..1000).map(|_| new_id().expect("random numbers")).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| is_id(id)));
        for other in
            ["", "4k7m2p9", "4k7m2p9xx", "4k7m2p9l", "4k7m2p91", "4K7m2p9x", "4k7m2p\u{e9}"]
        {
            assert!(!is_id(other), "{other}");
        }
    }
}
