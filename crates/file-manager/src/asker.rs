//! A call with its subject, at the file object manager.

use super::FileManager;
use inode_labels::CallClaims;
use mediation::call::Asker;
use std::ops::Deref;

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

impl<'a> Deref for FileAsker<'a> {
    type Target = Asker<'a>;

    fn deref(&self) -> &Asker<'a> {
        &self.asker
    }
}
