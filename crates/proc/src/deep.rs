//! Directories whose path is longer than the kernel tells: they are climbed.

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags},
    io::{Errno, Result},
};
use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::PathBuf,
};

/// Directories that are climbed, and entries that are looked at for their names: beyond, nobody
/// learns the path.
const MOST_STEPS: usize = 1_000;
const MOST_ENTRIES: usize = 100_000;
const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);

/// The path of a directory: that of the first above it that `known` knows, and the names from
/// there.
///
/// Of directories that are renamed meanwhile, each had its name, but perhaps not all at once.
pub(crate) fn climb(
    directory: BorrowedFd<'_>,
    known: impl Fn(BorrowedFd<'_>) -> Result<PathBuf>,
) -> Result<PathBuf> {
    let mut names: Vec<OsString> = Vec::new();
    let mut entries = 0;
    let mut at = rustix::fs::openat(directory, c".", HANDLE, Mode::empty())?;
    for _ in 0..MOST_STEPS {
        let above = rustix::fs::openat(&at, c"..", HANDLE, Mode::empty())?;
        names.push(name_in(&above, &at, &mut entries)?);
        match known(above.as_fd()) {
            Err(Errno::NAMETOOLONG) => at = above,
            Ok(mut path) => {
                path.extend(names.iter().rev());
                return Ok(path);
            }
            Err(error) => return Err(error),
        }
    }
    Err(Errno::NAMETOOLONG)
}

/// The name that `directory` has in `above`.
fn name_in(above: &OwnedFd, directory: &OwnedFd, entries: &mut usize) -> Result<OsString> {
    let wanted = rustix::fs::fstat(directory)?;
    let list = rustix::fs::openat(
        above,
        c".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    for entry in Dir::new(list)? {
        let entry = entry?;
        *entries += 1;
        if *entries > MOST_ENTRIES {
            break;
        }
        let name = entry.file_name();
        if entry.ino() != wanted.st_ino || matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let found = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino) {
            return Ok(OsStr::from_bytes(name.to_bytes()).to_owned());
        }
    }
    Err(Errno::NAMETOOLONG)
}
