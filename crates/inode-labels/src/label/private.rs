//! Directories that a sandbox has in the place of the machine's.

use std::path::{Path, PathBuf};

/// Directories that are the sandbox's own. What was opened outside before, in those that they
/// replace, has paths in them as well.
#[derive(Clone, Debug, Default)]
pub struct Private {
    /// Each with the device that it is.
    pub directories: Vec<(PathBuf, (u32, u32))>,
    /// What of outside is put back in them.
    pub keep: Vec<PathBuf>,
}

impl Private {
    /// Whether a file is none of the sandbox's, though it has a path there.
    pub(super) fn replaces(&self, path: &Path, device: (u32, u32)) -> bool {
        let of_outside =
            |(directory, own): &(PathBuf, _)| *own != device && path.starts_with(directory);
        self.directories.iter().any(of_outside)
            && !self.keep.iter().any(|kept| path.starts_with(kept))
    }
}
