//! Symbolic links that a call was led by.

use rustix::io::{Errno, Result};
use std::{
    cell::{Cell, RefCell},
    os::fd::{AsFd, OwnedFd},
};

/// The directories that hold the links which the walks of one call have followed. Whoever may make
/// an entry in one of them may have made the link.
#[derive(Debug, Default)]
pub struct LinkDirectories {
    known: RefCell<Vec<OwnedFd>>,
    /// The kernel has followed one, and does not say where it lies.
    has_unknown: Cell<bool>,
}

impl LinkDirectories {
    /// A link in `directory` is followed.
    pub(crate) fn follow(&self, directory: impl AsFd) -> Result<()> {
        let directory = directory.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        self.known.borrow_mut().push(directory);
        Ok(())
    }

    /// The kernel follows a link.
    pub(crate) fn follow_unknown(&self) {
        self.has_unknown.set(true);
    }

    /// Calls `see` with each; with `None` for those that lie nobody knows where.
    ///
    /// # Errors
    ///
    /// The first that `see` returns.
    pub fn each(&self, mut see: impl FnMut(Option<&OwnedFd>) -> Result<()>) -> Result<()> {
        self.known.borrow().iter().try_for_each(|it| see(Some(it)))?;
        if self.has_unknown.get() { see(None) } else { Ok(()) }
    }
}
