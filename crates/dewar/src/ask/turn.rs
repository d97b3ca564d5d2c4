//! Whose turn it is to ask on a terminal. Several runs may share one, and an answer is for the
//! question that is seen last.

use proc::Proc;
use rustix::{
    fs::{FileType, FlockOperation, Mode, OFlags, fcntl_lock, fstat},
    termios::tcgetsid,
};
use std::os::fd::{AsFd as _, OwnedFd};

/// The node of the controlling terminal, which everybody who asks there locks: whichever user it
/// is, and only who can open the terminal. The lock is of the process (`F_SETLK`), as descriptors
/// are shared with whatever the same shell has started.
pub(super) struct Turns(OwnedFd);

/// A turn. Dropped, it is over.
pub(super) struct Turn<'a>(&'a OwnedFd);

impl Turns {
    /// `None` if the node cannot be opened, and no descriptor of it was handed down.
    pub(super) fn open() -> Option<Self> {
        let stat = Proc::open().ok()?.stat(std::process::id()).ok()?;
        let number = stat.terminal?;
        // The kernel knows a session by the terminal itself, so it is no other of this number.
        let is_own = |node: &OwnedFd| {
            let is_it = |found: rustix::fs::Stat| {
                FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice
                    && found.st_rdev == number
            };
            fstat(node).is_ok_and(is_it) && tcgetsid(node).is_ok()
        };
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = stat.terminal_path();
        let opened = opened.and_then(|path| rustix::fs::open(path, flags, Mode::empty()).ok());
        let inherited = || std::io::stderr().as_fd().try_clone_to_owned().ok();
        opened.filter(is_own).or_else(|| inherited().filter(is_own)).map(Self)
    }

    /// `None` while somebody else asks.
    pub(super) fn take(&self) -> Option<Turn<'_>> {
        fcntl_lock(&self.0, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Turn(&self.0))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // It ends with this process, too.
        let _ = fcntl_lock(self.0, FlockOperation::NonBlockingUnlock);
    }
}
