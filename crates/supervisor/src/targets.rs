//! The threads that a filter sends calls of.

use crate::{execs::Execs, quiesce::Quiesce, seize_timeout::SeizeTimeout, sys::notify::Listener};
use proc::ProcessTree;

/// The threads of a sandbox: the targets of its supervisor, in the words of seccomp_unotify(2).
#[derive(Debug)]
pub struct Targets {
    /// Where their calls come from, and answers go.
    pub listener: Listener,
    /// Their processes.
    pub tree: ProcessTree,
    /// Their calls under way.
    pub quiesce: Quiesce,
    /// Execs that are looked at while they are made.
    pub execs: Execs,
    /// Who helps whoever seizes them.
    pub seizing: SeizeTimeout,
}
