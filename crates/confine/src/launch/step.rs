//! The steps by which a view is built.

use std::{ffi::OsString, path::PathBuf};

/// What happens at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ViewEntry {
    /// An empty directory for everyone.
    Private,
    /// A read-only directory with nothing but mount points.
    Absent,
    /// The original, put back.
    Keep,
    /// A symbolic link, made again.
    Link(OsString),
}

impl ViewEntry {
    /// Whether it takes away what is below.
    pub(super) fn covers(&self) -> bool {
        matches!(self, Self::Private | Self::Absent)
    }
}

/// One step of building the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) path: PathBuf,
    pub(super) place: ViewEntry,
    /// The covered directory that this place lies in, if it is not in the original file system.
    pub(super) host: Option<PathBuf>,
}
