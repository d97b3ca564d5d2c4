//! What a plugin keeps between calls, and over replacements.

use std::{collections::HashMap, sync::Mutex};

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

    /// Keeps `value` under `key`; an empty one removes the key. Whether there was room within `most` bytes.
    pub(crate) fn set(&self, key: &[u8], value: &[u8], most: usize) -> bool {
        let mut entries = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let old = entries.map.get(key).map_or(0, |old| old.len() + key.len());
        let rest = entries.bytes - old;
        if value.is_empty() {
            entries.map.remove(key);
            entries.bytes = rest;
            return true;
        }
        let new = rest + key.len() + value.len();
        if new > most {
            return false;
        }
        entries.map.insert(key.to_vec(), value.to_vec());
        entries.bytes = new;
        true
    }
}
