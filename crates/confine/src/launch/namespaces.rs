//! Namespaces: which ones the sandbox gets, and how the monitor enters its own.

use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};
use serde::{Deserialize, Serialize};

use crate::sys;

/// The namespaces that a sandbox gets. What is asked for here is created, or the launch fails:
/// nothing is left out silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)]
pub struct Namespaces {
    /// A user namespace: needed for all others by whoever is not root. Root should not ask for it.
    pub user: bool,
    /// A mount namespace, shared by monitor and sandbox; needed for every [`View`](super::View)
    /// and for `pid`.
    pub mount: bool,
    /// A pid namespace with its own `/proc`.
    pub pid: bool,
    /// Own System V IPC and POSIX message queues.
    pub ipc: bool,
    /// Own host name.
    pub uts: bool,
    /// The sandbox's cgroup becomes its root.
    pub cgroup: bool,
    /// A network of its own, with nothing but an empty loopback interface.
    pub net: bool,
}

impl Namespaces {
    /// No namespace at all: the envelope and the filter alone protect.
    pub const NONE: Self = Self {
        user: false,
        mount: false,
        pid: false,
        ipc: false,
        uts: false,
        cgroup: false,
        net: false,
    };

    /// Every namespace that makes sense for the calling user; `net` if `no_network`.
    #[must_use]
    pub fn all(no_network: bool) -> Self {
        Self {
            user: !privileged(),
            mount: true,
            pid: true,
            ipc: true,
            uts: true,
            cgroup: true,
            net: no_network,
        }
    }

    /// The names of those asked for, as `dewar doctor` writes them.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (self.user, "user"),
            (self.mount, "mount"),
            (self.pid, "pid"),
            (self.ipc, "ipc"),
            (self.uts, "uts"),
            (self.cgroup, "cgroup"),
            (self.net, "net"),
        ];
        all.into_iter().filter_map(|(asked, name)| asked.then_some(name)).collect()
    }

    /// Those that `clone` creates together with init.
    pub(crate) fn clone_flags(self) -> u64 {
        let all = [
            (self.pid, libc::CLONE_NEWPID),
            (self.ipc, libc::CLONE_NEWIPC),
            (self.uts, libc::CLONE_NEWUTS),
            (self.net, libc::CLONE_NEWNET),
        ];
        let asked = all.into_iter().filter_map(|(asked, flag)| asked.then_some(flag));
        asked.fold(0, |flags, flag| flags | u64::from(flag.cast_unsigned()))
    }

    /// Moves the calling process into new user and mount namespaces, with the identity of the
    /// caller kept and nothing propagating to or from the outside.
    pub(super) fn enter(self, proc: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut flags = UnshareFlags::empty();
        flags.set(UnshareFlags::NEWUSER, self.user);
        flags.set(UnshareFlags::NEWNS, self.mount);
        if flags.is_empty() {
            return Ok(());
        }
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        sys::unshare(proc, flags)?;
        if self.user {
            // An unprivileged user may map its own ids only, and groups only after giving up
            // setgroups(), which could otherwise drop a group that denies access.
            write(proc, "self/setgroups", b"deny")?;
            write(proc, "self/uid_map", format!("{uid} {uid} 1\n").as_bytes())?;
            write(proc, "self/gid_map", format!("{gid} {gid} 1\n").as_bytes())?;
        }
        if self.mount {
            mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
        }
        Ok(())
    }
}

/// Whether the calling thread may create namespaces and mounts without a user namespace.
pub(super) fn privileged() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

fn write(proc: BorrowedFd<'_>, path: &str, text: &[u8]) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(proc, path, flags, Mode::empty())?;
    rustix::io::write(file, text).map(drop)
}
