//! The temporary directory of a run whose view gives it none.

use anyhow::Context as _;
use std::{
    env,
    fs::{self, DirEntry, File},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};
use tempfile::TempDir;

const PREFIX: &str = "dewar-run-";
/// Younger ones may be about to be locked.
const SETTLED: Duration = Duration::from_secs(60);

/// Removed with this value.
pub(super) struct Scratch {
    directory: TempDir,
    /// Locked as long as the run lasts.
    _lock: File,
}

impl Scratch {
    /// Makes one, and removes what runs have left that were killed.
    pub(super) fn make() -> anyhow::Result<Self> {
        for entry in fs::read_dir(env::temp_dir()).into_iter().flatten().flatten() {
            if is_left(&entry).unwrap_or(false) {
                // Whatever stands in the way does not concern this run.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Self::new().context("cannot make a private temporary directory")
    }

    fn new() -> std::io::Result<Self> {
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let lock = File::open(directory.path())?;
        lock.try_lock()?;
        Ok(Self { directory, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Whether this is the directory of a run that is no more. Nobody else can put one of ours into its
/// place.
fn is_left(entry: &DirEntry) -> std::io::Result<bool> {
    let metadata = entry.metadata()?;
    let ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
        && metadata.is_dir()
        && metadata.uid() == rustix::process::geteuid().as_raw();
    let settled = metadata.modified()?.elapsed().is_ok_and(|age| age > SETTLED);
    Ok(ours && settled && File::open(entry.path())?.try_lock().is_ok())
}
