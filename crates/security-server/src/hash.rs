//! Hash tables, whose order is the same in every process.

/// Hashes as avc's and the monitor's tables do, from a fixed seed.
pub(crate) type FixedState = foldhash::fast::FixedState;
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, FixedState>;
pub(crate) type HashSet<K> = std::collections::HashSet<K, FixedState>;
