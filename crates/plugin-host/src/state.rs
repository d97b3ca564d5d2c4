//! What a plugin keeps between calls, and over replacements.

use std::{collections::HashMap, sync::Mutex};

/// What an entry takes beside its key and value.
const ENTRY: usize = 96;

/// Keys and values of one plugin, shared by its instances.
#[derive(Debug, Default)]
pub(crate) struct State(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    map: HashMap<Vec<u8>, Vec<u8>>,
    bytes: usize,
}

impl State {
    pub(crate) fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let entries = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        entries.map.get(key).cloned()
    }

    /// Keeps `value` under `key`; an empty one removes the key. Whether there was room within
    /// `most` bytes.
    pub(crate) fn set(&self, key: &[u8], value: &[u8], most: usize) -> bool {
        let mut entries = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let size = |value: &[u8]| ENTRY + key.len() + value.len();
        let old = entries.map.get(key).map_or(0, |old| size(old));
        let rest = entries.bytes - old;
        if value.is_empty() {
            entries.map.remove(key);
            entries.bytes = rest;
            return true;
        }
        let new = rest + size(value);
        if new > most {
            return false;
        }
        entries.map.insert(key.to_vec(), value.to_vec());
        entries.bytes = new;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_entries_take_room_too() {
        let state = State::default();
        let mut count = 0_u32;
        while state.set(&count.to_ne_bytes(), b"x", 10_000) {
            count += 1;
        }
        assert_eq!(count, 99);
        assert!(state.set(&0_u32.to_ne_bytes(), b"y", 10_000), "in the place of the old");
        assert!(state.set(&0_u32.to_ne_bytes(), b"", 10_000));
        assert!(state.set(&count.to_ne_bytes(), b"x", 10_000), "in the room of what was removed");
    }
}
