//! Files that a user names to read from, in places where a run may have been before: a pipe that it
//! has left is not waited for.

use crate::output_file::{NO_FILE, is_systems};
use rustix::fs::OFlags;
use std::{fs::File, io, os::unix::fs::OpenOptionsExt as _, path::Path};

/// Opens the file `path` to read it. What lies in `/dev` and `/proc`, where no run makes anything,
/// is opened as it is named: `/dev/stdin`, `/dev/fd/3`.
///
/// # Errors
///
/// That it is no file, or what the system says.
pub fn open(path: &Path) -> io::Result<File> {
    if is_systems(path) {
        return File::open(path);
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    // A directory says so itself when it is read.
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_dir() { Ok(file) } else { Err(io::Error::other(NO_FILE)) }
}
