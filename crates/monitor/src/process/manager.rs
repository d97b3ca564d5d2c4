//! What is known of processes beside their labels.

use std::sync::atomic::{AtomicI32, Ordering};

/// The process object manager: what it knows of processes beside their labels.
#[derive(Debug, Default)]
pub(crate) struct ProcessManager {
    /// The process group that the run has last made the foreground of the terminal; 0 for none.
    foreground: AtomicI32,
}

impl ProcessManager {
    /// Whether the run has last made `group` the foreground.
    pub(super) fn is_foreground(&self, group: i32) -> bool {
        self.foreground.load(Ordering::Relaxed) == group
    }

    /// The run makes `group` the foreground.
    pub(super) fn makes_foreground(&self, group: i32) {
        self.foreground.store(group, Ordering::Relaxed);
    }
}
