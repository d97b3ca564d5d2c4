//! Why a script that is there is not executed: its first line names what is not.

use monitor::visible;
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read as _},
    os::unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// The most of a first line that the kernel reads.
const MOST_BYTES: u64 = 256;

/// The file that a command's name stands for, where there is one.
pub(crate) fn found(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(command.into()).filter(|path: &PathBuf| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|place| place.join(command)).find(|path| path.is_file())
}

/// What is wrong with the first line of a script; `None` of anything else.
pub(super) fn wrong(path: &Path) -> Option<String> {
    let mut first = Vec::new();
    open(path).ok()?.take(MOST_BYTES).read_to_end(&mut first).ok()?;
    let line = first.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let interpreter = line.trim_ascii_start().split(|byte| b" \t".contains(byte)).next()?;
    let shown = |name: &[u8]| visible(&String::from_utf8_lossy(name));
    if let Some(name) = interpreter.strip_suffix(b"\r") {
        return Some(format!(
            "its first line ends in CR LF, so `{}\\r` is looked for: write its lines with LF (`sed -i 's/\\r$//'`)",
            shown(name)
        ));
    }
    let is_there = Path::new(OsStr::from_bytes(interpreter)).exists();
    let name = shown(interpreter);
    (!is_there)
        .then(|| format!("its first line names `{name}`, which is not there, or not in this run"))
}

/// A file, and nothing that opening would wait for. `/proc` is not there any more to look it up.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_first_line_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        for (text, want) in [
            (&b"#!/no/such/shell -e\n"[..], Some("`/no/such/shell`")),
            (b"#! /bin/sh\r\nexit 3\r\n", Some("CR LF, so `/bin/sh\\r`")),
            (b"#!/no/\x1b[2J\n", Some("`/no/\\u001b[2J`")),
            (b"#!/bin/sh\n", None),
            (b"\x7fELF", None),
            (b"", None),
        ] {
            std::fs::write(&script, text).unwrap();
            let told = wrong(&script);
            let is_told = told.as_ref().zip(want).is_some_and(|(told, want)| told.contains(want));
            assert!(is_told || (&told, want) == (&None, None), "{told:?}");
        }
        assert_eq!(wrong(directory.path()), None, "it is a directory");
    }
}
