//! Scripts: files that the kernel has another program execute.

use proc::ProcessTree;
use rustix::fs::{Mode, OFlags};
use std::{
    ffi::OsStr,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::PathBuf,
};

/// What the kernel reads of a file to find out what it is (`BINPRM_BUF_SIZE`).
const MOST_BYTES: usize = 256;

/// The start of a script, as far as the kernel looks at it; `None` for what is none. A program that
/// cannot be read is none that the kernel would interpret.
pub fn start(tree: &ProcessTree, file: &OwnedFd) -> Option<Vec<u8>> {
    let name = file.as_raw_fd().to_string();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&tree.own_fds, name, flags, Mode::empty()).ok()?;
    let mut start = vec![0; MOST_BYTES];
    let count = rustix::io::read(file, &mut start).ok()?;
    start.truncate(count);
    start.starts_with(b"#!").then_some(start)
}

/// The program that a script starting so names; `None` if the kernel would take it for none.
pub fn interpreter(start: &[u8]) -> Option<PathBuf> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let line = start.strip_prefix(b"#!")?;
    let line = line.split(|byte| matches!(byte, b'\n' | b'\0')).next()?;
    let name = &line[line.iter().position(|byte| !is_blank(byte))?..];
    let end = name.iter().position(is_blank).unwrap_or(name.len());
    Some(OsStr::from_bytes(&name[..end]).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_is_the_one_that_the_kernel_takes() {
        for (start, want) in [
            ("#!/bin/sh\nexit", Some("/bin/sh")),
            ("#! \t/usr/bin/env -S node\n", Some("/usr/bin/env")),
            ("#!/bin/sh", Some("/bin/sh")),
            ("#!sh\tx\n", Some("sh")),
            ("#!/bin/a\0b\n", Some("/bin/a")),
            ("#!  \n/bin/sh", None),
            ("#!\n", None),
            ("\u{7f}ELF", None),
        ] {
            assert_eq!(interpreter(start.as_bytes()), want.map(PathBuf::from), "{start:?}");
        }
    }
}
