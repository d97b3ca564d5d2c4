//! The atomics that the cache is made of. `tests/loom.rs` puts loom's in their place.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
