//! Where workspaces lie.

use serde::Serialize;
use std::{
    io,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Where workspaces lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Medium {
    /// What tables call it.
    pub name: String,
    /// The directory in which workspaces are made.
    pub parent: PathBuf,
}

/// A workspace could not be made or filled.
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare a workspace in `{}`: {source}", parent.display())]
pub struct WorkspaceError {
    /// Where.
    pub parent: PathBuf,
    /// What the system says.
    pub source: io::Error,
}

impl Medium {
    /// On disk, as far as `/var/tmp` is.
    #[must_use]
    pub fn disk() -> Self {
        Self { name: "disk".to_owned(), parent: "/var/tmp".into() }
    }

    /// In memory.
    #[must_use]
    pub fn memory() -> Self {
        Self { name: "memory".to_owned(), parent: "/dev/shm".into() }
    }

    /// A new workspace, filled; removed when dropped.
    pub(crate) fn workspace(
        &self,
        fill: &dyn Fn(&Path) -> io::Result<()>,
    ) -> Result<TempDir, WorkspaceError> {
        tempfile::Builder::new()
            .prefix("dewar-bench-")
            .tempdir_in(&self.parent)
            .and_then(|made| fill(made.path()).map(|()| made))
            .map_err(|source| WorkspaceError { parent: self.parent.clone(), source })
    }
}
