//! What init and the command are told.

use super::{Filter, LaunchSpec, exec::Program, limits::ByCgroup};
use rustix::process::Rlimit;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Everything that init and the command need to know.
pub(super) struct InitSpec<'a> {
    pub(super) spec: &'a LaunchSpec,
    pub(super) filter: &'a Filter<'a>,
    pub(super) program: &'a Program,
    /// The `/proc` of the monitor's pid namespace.
    pub(super) proc: BorrowedFd<'a>,
    pub(super) by_cgroup: ByCgroup,
    /// The limits on descriptors that the caller of Dewar has.
    pub(super) files: Rlimit,
    /// Where to write "0" to join the cgroup that holds the limits.
    pub(super) cgroup: &'a [OwnedFd],
    /// Whether the command leads a process group of its own.
    pub(super) leads: bool,
}
