//! What `dewar learn` tells the run that it learns from.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What is learned from a run; it is told by a file beside its profile.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Learning {
    /// The profile that it is learned above, as it was named.
    pub(crate) base: String,
    /// Where the new one goes, if anything is learned.
    pub(crate) file: PathBuf,
}

impl Learning {
    /// What is known of a run under the profile `above`.
    pub(crate) fn of(above: &Path) -> anyhow::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(Self::file(above))?)?)
    }

    /// Says it of a run under `above`.
    pub(crate) fn tell(&self, above: &Path) -> anyhow::Result<()> {
        Ok(std::fs::write(Self::file(above), serde_json::to_vec(self)?)?)
    }

    fn file(above: &Path) -> PathBuf {
        above.with_extension("json")
    }
}
