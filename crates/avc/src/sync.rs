//! What `tests/loom.rs` replaces to run the cache through every order of events: its atomics, and
//! the seed of its hash.

pub(crate) use foldhash::quality::RandomState as Hasher;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
