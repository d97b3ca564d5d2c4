//! Single steps of a launch, for trying whether this machine allows them.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::cgroup::Cgroup;
use super::limits::{ByCgroup, Limits};
use super::{Namespaces, init, namespaces};

/// Whether the calling thread needs no user namespace.
pub(crate) fn privileged() -> bool {
    namespaces::privileged()
}

/// Moves the calling process into new user and mount namespaces.
pub(crate) fn enter(namespaces: Namespaces, proc: BorrowedFd<'_>) -> Result<(), Errno> {
    namespaces.enter(proc)
}

/// Mounts a new `/proc`.
pub(crate) fn mount_proc() -> Result<(), Errno> {
    init::mount_proc()
}

/// Which of `limits` a cgroup would enforce; it is made and removed again.
pub(crate) fn cgroup(limits: &Limits) -> ByCgroup {
    Cgroup::make(limits).map(|cgroup| cgroup.by()).unwrap_or_default()
}
