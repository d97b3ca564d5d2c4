//! What is known of processes beside their labels.

use std::sync::atomic::{AtomicI32, Ordering};

/// The process object manager: what it knows of processes beside their labels.
#[derive(Debug)]
pub(crate) struct ProcessManager {
    /// Whether Landlock keeps what looks into processes inside.
    pub(super) has_envelope: bool,
    /// The process group that the run has last made the foreground of the terminal; 0 for none.
    foreground: AtomicI32,
}

impl ProcessManager {
    pub(crate) fn new(has_envelope: bool) -> Self {
        Self { has_envelope, foreground: AtomicI32::default() }
    }

    /// Whether the run has last made `group` the foreground.
    pub(super) fn is_foreground(&self, group: i32) -> bool {
        self.foreground.load(Ordering::Relaxed) == group
    }

    /// The run makes `group` the foreground.
    pub(super) fn makes_foreground(&self, group: i32) {
        self.foreground.store(group, Ordering::Relaxed);
    }
}
