//! What the kernel refuses root although policy grants it, for want of a capability: named at the
//! end of the run.
//!
//! Root without capabilities is an ordinary owner of files. Where a call is made on the program's
//! behalf, its errno tells; an open that the program makes itself is looked at beforehand.

use crate::{
    answer::CallResult,
    caller::Caller,
    resolve::{Name, resolve},
};
use rustix::{
    fs::{Access, AtFlags, accessat},
    io::Errno,
};
use std::{
    cell::Cell,
    collections::BTreeMap,
    os::fd::AsRawFd,
    path::Path,
    sync::{Mutex, PoisonError},
};
use syscalls::Sysno;

/// Names of class `capability`, and their numbers in capability(7).
const CHOWN: (&str, u32) = ("chown", 0);
const DAC_OVERRIDE: (&str, u32) = ("dac_override", 1);
const FOWNER: (&str, u32) = ("fowner", 3);
const MKNOD: (&str, u32) = ("mknod", 27);

thread_local! {
    /// Whether policy has denied something since this thread began with the call it is at.
    static DENIED: Cell<bool> = const { Cell::new(false) };
}

/// Policy has denied something.
pub fn note_denial() {
    DENIED.set(true);
}

/// Counts what the kernel refused root for want of a capability.
#[derive(Debug)]
pub struct MissingCapabilities {
    /// The run is root's.
    is_root: bool,
    /// The capabilities that it has.
    has: u64,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

impl MissingCapabilities {
    /// For a run of this process's user with the capabilities `has`.
    pub fn new(has: u64) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        Self { is_root, has, counts: Mutex::default() }
    }

    /// Runs `decide`, and notes what the kernel refused it.
    pub fn watch(&self, call: Sysno, decide: impl FnOnce() -> CallResult) -> CallResult {
        if !self.is_root {
            return decide();
        }
        DENIED.set(false);
        let outcome = decide();
        if let Err(error) = outcome
            && !DENIED.get()
            && let Some(capability) = would_help(call, error)
        {
            self.note(capability);
        }
        outcome
    }

    /// Notes an open for writing that is left to the program and that the kernel will refuse.
    pub fn watch_open(&self, caller: Caller<'_>, name: Name<'_>) {
        if !self.is_root || self.holds(DAC_OVERRIDE) {
            return;
        }
        let directory = || {
            let path = match name.path.parent()? {
                parent if parent.as_os_str().is_empty() => Path::new("."),
                parent => parent,
            };
            resolve(caller, Name { path, follow: true, ..name }).ok()
        };
        let file = resolve(caller, name).ok().or_else(directory);
        let own_fds = &caller.tree.own_fds;
        let refused = file.is_some_and(|file| {
            let number = file.as_raw_fd().to_string();
            accessat(own_fds, number, Access::WRITE_OK, AtFlags::EACCESS) == Err(Errno::ACCESS)
        });
        if refused {
            self.note(DAC_OVERRIDE);
        }
    }

    fn holds(&self, (_, number): (&str, u32)) -> bool {
        self.has & 1 << number != 0
    }

    fn note(&self, capability: (&'static str, u32)) {
        if !self.holds(capability) {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry(capability.0).or_default() += 1;
        }
    }

    /// What was noted.
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(name, count)| (*name, *count)).collect()
    }
}

/// The capability without which the kernel refuses `call` so.
fn would_help(call: Sysno, error: Errno) -> Option<(&'static str, u32)> {
    use Sysno::*;
    let is_owners = matches!(
        call,
        chmod | fchmod | fchmodat | fchmodat2 | utime | utimes | futimesat | utimensat
    );
    let on_entries = matches!(
        call,
        mkdir
            | mkdirat
            | rmdir
            | unlink
            | unlinkat
            | rename
            | renameat
            | renameat2
            | link
            | linkat
            | symlink
            | symlinkat
            | mknod
            | mknodat
            | truncate
            | open
            | openat
            | openat2
            | creat
    );
    match error {
        Errno::PERM if matches!(call, chown | fchown | lchown | fchownat) => Some(CHOWN),
        Errno::PERM if matches!(call, mknod | mknodat) => Some(MKNOD),
        Errno::PERM if is_owners => Some(FOWNER),
        Errno::ACCESS if is_owners || on_entries => Some(DAC_OVERRIDE),
        _ => None,
    }
}
