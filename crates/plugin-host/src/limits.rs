//! What a plugin may use.

use std::time::Duration;

/// No plugin's memory may exceed this.
pub(crate) const MAX_MEMORY: usize = 64 << 20;

/// Limits of one plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time for one call.
    pub call_time: Duration,
    /// Memory of one instance: static data, frames and buffers together.
    pub memory_bytes: u32,
    /// Length of a reply.
    pub output_bytes: usize,
    /// Keys and values kept by `host_set`, together.
    pub state_bytes: usize,
    /// Text that one call may log.
    pub log_bytes: usize,
    /// Faults in a row after which it is not called any more, until it is replaced. In a session
    /// that says what it is called on: not on that, for a minute.
    pub faults: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_time: Duration::from_millis(100),
            memory_bytes: 16 << 20,
            output_bytes: 4 << 20,
            state_bytes: 1 << 20,
            log_bytes: 16 << 10,
            faults: 8,
        }
    }
}
