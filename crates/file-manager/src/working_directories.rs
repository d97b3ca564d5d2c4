//! Working directories of threads at a former call.

use super::path_cache::{lock, may_differ};
use inode_labels::Status;
use rustix::fs::{AtFlags, CWD};
use std::{
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, Mutex},
};
use supervisor::{Caller, Name};

/// Threads whose working directories are remembered.
const DIRECTORIES: usize = 32;

/// A thread's number and its working directory.
type Directories = [Option<(u32, Arc<OwnedFd>)>; DIRECTORIES];

/// By the threads' numbers.
#[derive(Debug, Default)]
pub(crate) struct WorkingDirectories(Mutex<Directories>);

impl WorkingDirectories {
    /// What `name` leads to by a single look at it. Another thread may just have changed the
    /// caller's working directory or have its number by now, and a magic link leads to where it
    /// leads the monitor: it is good for a grant after which the program walks itself, and for
    /// nothing else.
    pub(crate) fn stat(&self, caller: Caller<'_>, name: Name<'_>) -> Option<Status> {
        let links = if name.follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let flags = links | AtFlags::NO_AUTOMOUNT;
        if name.path.is_absolute() {
            let differs = may_differ(name.path);
            return if differs { None } else { Status::of_path(CWD, name.path, flags).ok() };
        }
        let tid = caller.call.tid;
        let remembered = lock(&self.0)[tid as usize % DIRECTORIES].clone();
        let (_, cwd) = remembered.filter(|(of, _)| name.dirfd == libc::AT_FDCWD && *of == tid)?;
        // An empty path leads nowhere, as no flag says otherwise.
        Status::of_path(cwd.as_fd(), name.path, flags).ok()
    }

    /// Remembers the caller's working directory, if this call has looked it up.
    pub(crate) fn remember(&self, caller: Caller<'_>) {
        let Some(Ok(cwd)) = caller.cwd.get().map(OwnedFd::try_clone) else { return };
        let tid = caller.call.tid;
        lock(&self.0)[tid as usize % DIRECTORIES] = Some((tid, Arc::new(cwd)));
    }

    /// Knows no working directory any more: somebody is about to change one.
    pub(crate) fn forget(&self) {
        *lock(&self.0) = Directories::default();
    }
}
