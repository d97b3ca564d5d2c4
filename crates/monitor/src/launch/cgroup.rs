//! The sandbox's cgroup, where the calling user may make one.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::limits::{ByCgroup, Limits};

/// A cgroup (or one per controller, in the old hierarchy) made for one sandbox.
pub(super) struct Cgroup {
    directories: Vec<PathBuf>,
    entries: Vec<OwnedFd>,
    by: ByCgroup,
}

impl Cgroup {
    /// Makes a cgroup with `limits`; `None` if there is nothing to limit or no way to.
    pub(super) fn make(_limits: &Limits) -> Option<Self> {
        None
    }

    /// Where to write "0" to become a member.
    pub(super) fn entries(&self) -> &[OwnedFd] {
        &self.entries
    }

    /// Which limits it enforces.
    pub(super) fn by(&self) -> ByCgroup {
        self.by
    }

    /// Removes it; it has no member any more.
    pub(super) fn remove(self) {
        for directory in self.directories {
            let _ = std::fs::remove_dir(directory);
        }
    }
}
