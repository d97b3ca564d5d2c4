//! The working directory and the file mode creation mask that calls are made with in a program's
//! place (`fs_struct` of fork(2)).

use crate::sys::thread;
use rustix::{
    fs::{Mode, OFlags},
    io::Result,
    process::{fchdir, umask},
};
use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::{Mutex, PoisonError},
};

/// Whose they are.
#[derive(Debug)]
pub enum FsState {
    /// Each thread of the monitor has its own, and leaves them as the last call needed them.
    OfThread,
    /// All threads share the process's, as a filter around Dewar refuses unshare(2). Who changes
    /// them holds the lock, and puts back what was there.
    OfProcess(Mutex<()>),
}

impl FsState {
    /// As this machine has it.
    pub fn new(unshares: bool) -> Self {
        if unshares { Self::OfThread } else { Self::OfProcess(Mutex::default()) }
    }

    /// Makes the calling thread one that makes calls for programs: one with state of its own is in
    /// the monitor's `/proc/self/fd` between them.
    pub fn prepare_thread(&self, own_fds: &OwnedFd) -> Result<()> {
        match self {
            Self::OfThread => thread::own_file_system_state().and_then(|()| fchdir(own_fds)),
            Self::OfProcess(_) => Ok(()),
        }
    }

    /// The path of the monitor's descriptor `fd` as an address has to name it, which no directory
    /// goes with. A thread that shares its state needs the monitor's own `/proc`: where unshare(2)
    /// is refused, there is no view that has another.
    pub fn path_of(&self, fd: &OwnedFd) -> String {
        let number = fd.as_raw_fd();
        match self {
            Self::OfThread => number.to_string(),
            Self::OfProcess(_) => format!("/proc/self/fd/{number}"),
        }
    }

    /// Runs `make` under a file mode creation mask. It must not wait for others.
    pub fn with_umask<T>(&self, mask: Mode, make: impl FnOnce() -> Result<T>) -> Result<T> {
        match self {
            Self::OfThread => {
                umask(mask);
                make()
            }
            Self::OfProcess(lock) => {
                let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                let before = umask(mask);
                let made = make();
                umask(before);
                made
            }
        }
    }

    /// The same in the directory `cwd`; a thread with state of its own is in `own_fds` then.
    pub fn in_cwd<T>(
        &self,
        (cwd, own_fds): (impl AsFd, &OwnedFd),
        mask: Mode,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        match self {
            Self::OfThread => {
                fchdir(cwd)?;
                umask(mask);
                let made = make();
                fchdir(own_fds)?;
                made
            }
            Self::OfProcess(lock) => {
                let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let home = rustix::fs::open(".", flags, Mode::empty())?;
                fchdir(cwd)?;
                let before = umask(mask);
                let made = make();
                umask(before);
                fchdir(home)?;
                made
            }
        }
    }
}
