//! Where a walk along a path ended.

use rustix::{
    fs::FileType,
    io::{Errno, Result},
};
use std::{ffi::OsString, os::fd::OwnedFd};

/// Where a walk ended.
#[derive(Debug, Default)]
pub struct WalkedPath {
    /// The directory that holds the last component, and that component; absent where a magic link
    /// ended the walk or the path names a directory by `.`, `..` or `/`.
    pub entry: Option<(OwnedFd, OsString)>,
    /// The object itself, if it exists, as an `O_PATH` descriptor.
    pub object: Option<OwnedFd>,
    /// The process whose `/proc/PID` the object lies in, by its PID in the sandbox, unless it is
    /// the caller.
    pub process: Option<u32>,
    /// The path ended in a slash: only a directory will do.
    pub wants_dir: bool,
    /// The descriptor of the caller by whose link in `/proc` the walk ended.
    pub descriptor: Option<i32>,
}

impl WalkedPath {
    /// The object: `ENOENT` if there is none, `ENOTDIR` if the path wants a directory and this is
    /// something else.
    pub fn existing(self) -> Result<OwnedFd> {
        let object = self.object.ok_or(Errno::NOENT)?;
        if !self.wants_dir {
            return Ok(object);
        }
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&object)?.st_mode);
        if kind.is_dir() { Ok(object) } else { Err(Errno::NOTDIR) }
    }
}
