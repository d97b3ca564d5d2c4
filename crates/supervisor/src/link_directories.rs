//! Symbolic links that a call was led by.

use rustix::io::{Errno, Result};
use std::{
    cell::{Cell, RefCell},
    ffi::{OsStr, OsString},
    os::fd::{AsFd, OwnedFd},
};

/// The links which the walks of one call have followed, each by the directory that holds it and its
/// name there. Whoever may make that entry may have made the link.
#[derive(Debug, Default)]
pub struct LinkDirectories {
    known: RefCell<Vec<(OwnedFd, OsString)>>,
    /// The kernel has followed one, and does not say where it lies.
    has_unknown: Cell<bool>,
}

impl LinkDirectories {
    /// The link `name` in `directory` is followed.
    pub(crate) fn follow(&self, directory: impl AsFd, name: &OsStr) -> Result<()> {
        let directory = directory.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        self.known.borrow_mut().push((directory, name.to_owned()));
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
    pub fn each(
        &self,
        mut see: impl FnMut(Option<&(OwnedFd, OsString)>) -> Result<()>,
    ) -> Result<()> {
        self.known.borrow().iter().try_for_each(|it| see(Some(it)))?;
        if self.has_unknown.get() { see(None) } else { Ok(()) }
    }
}
