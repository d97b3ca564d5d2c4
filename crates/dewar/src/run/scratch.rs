//! The temporary directory of a run whose view gives it none.

use anyhow::Context as _;
use rustix::fs::{Mode, OFlags};
use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
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
        remove_left(&env::temp_dir());
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

/// Removes what runs have left in `place` that are no more.
fn remove_left(place: &Path) {
    let Ok(within) = File::open(place) else { return };
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && let Ok(Some(_lock)) = left(&within, &name)
        {
            // Whatever stands in the way does not concern this run.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The directory of a run that is no more, locked; `None` if it is none. What is looked at is what
/// is locked, and nobody else can put another into its place.
fn left(within: &File, name: &OsStr) -> std::io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = File::from(rustix::fs::openat(within, name, flags, Mode::empty())?);
    let metadata = directory.metadata()?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    let settled = metadata.modified()?.elapsed().is_ok_and(|age| age > SETTLED);
    Ok((ours && settled && directory.try_lock().is_ok()).then_some(directory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::fs::symlink, time::SystemTime};

    #[test]
    fn what_a_killed_run_has_left_goes_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let old = SystemTime::now() - 2 * SETTLED;
        for name in ["dewar-run-left", "dewar-run-locked", "dewar-run-young", "other", "elsewhere"]
        {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "").unwrap();
            if name != "dewar-run-young" {
                File::open(at(name)).unwrap().set_modified(old).unwrap();
            }
        }
        symlink("elsewhere", at("dewar-run-link")).unwrap();
        fs::write(at("dewar-run-file"), "").unwrap();
        let locked = File::open(at("dewar-run-locked")).unwrap();
        locked.lock().unwrap();
        remove_left(place.path());
        let names = fs::read_dir(place.path()).unwrap().map(|it| it.unwrap().file_name());
        let mut there: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        there.sort();
        let stay = ["file", "link", "locked", "young"].map(|name| format!("dewar-run-{name}"));
        assert_eq!(there, [&stay[..], &["elsewhere".into(), "other".into()]].concat());
        assert!(at("elsewhere/file").exists());
    }
}
