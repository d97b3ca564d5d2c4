//! A call with its subject, at the file object manager.

use super::FileManager;
use inode_labels::CallClaims;
use mediation::call::Asker;
use rustix::io::Result;
use std::{ops::Deref, os::fd::OwnedFd};
use supervisor::Witness;

/// A call with its subject, at the file object manager.
#[derive(Clone, Copy)]
pub struct FileAsker<'a> {
    /// The call.
    pub asker: Asker<'a>,
    /// The object manager.
    pub files: &'a FileManager,
    /// The names that this call may be about to make.
    pub claims: &'a CallClaims<'a>,
}

impl<'a> FileAsker<'a> {
    /// What sees, from now on, which names are made and removed in `directory`, and by how many.
    pub fn witness(&self, directory: &OwnedFd) -> Result<Witness<'a>> {
        let path = self.state.on_behalf.fs_state.path_of(directory);
        self.files.witnesses.begin(&path)
    }
}

impl<'a> Deref for FileAsker<'a> {
    type Target = Asker<'a>;

    fn deref(&self) -> &Asker<'a> {
        &self.asker
    }
}
