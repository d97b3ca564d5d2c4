//! A build of a real size: Lua, zlib and SQLite from Debian's sources, some 160 files of C.

use crate::pairs::Unit;
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

const FETCH: &str = include_str!("fetch.sh");
/// The directories that the sources lie in.
const PARTS: [&str; 3] = ["lua", "zlib", "sqlite"];

/// Why there are no sources.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// They could not be fetched.
    #[error(
        "cannot fetch the sources of Lua, zlib and SQLite from Debian (tclsh must be there): {0}"
    )]
    Fetch(String),
    /// They are not there.
    #[error("there are no sources in `{}`; --fetch gets them from Debian", .0.display())]
    Missing(PathBuf),
}

/// Fetches the sources from Debian, unless they are there.
///
/// # Errors
///
/// [`ProjectError::Fetch`], also if this is not Debian.
pub fn fetch(into: &Path) -> Result<(), ProjectError> {
    if !sources(into).is_empty() {
        return Ok(());
    }
    let run = Command::new("bash").arg("-c").arg(FETCH).arg("fetch").arg(into).output();
    let output = run.map_err(|error| ProjectError::Fetch(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = said.trim().lines().rev().take(3).collect();
    Err(ProjectError::Fetch(last.into_iter().rev().collect::<Vec<_>>().join(" / ")))
}

/// Every file that is compiled, relative to the directory.
#[must_use]
pub fn sources(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for part in PARTS {
        let entries = fs::read_dir(directory.join(part)).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        found
            .extend(names.filter(|name| name.ends_with(".c")).map(|name| format!("{part}/{name}")));
    }
    found.sort();
    found
}

/// The units: each compiles one file.
pub(crate) fn units(sources: &[String]) -> Vec<Unit> {
    let unit = |source: &String| {
        let part = source.split('/').next().unwrap_or_default();
        let object = source.replace(".c", ".o");
        let words = ["cc", "-O2", "-g", "-w", "-DSQLITE_CORE", &format!("-I{part}"), "-c", source];
        let mut argv: Vec<String> = words.map(str::to_owned).to_vec();
        argv.extend(["-o".to_owned(), object.clone()]);
        Unit::Command { argv, remove: vec![object], before: Vec::new() }
    };
    sources.iter().map(unit).collect()
}

/// Copies the sources into a workspace.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for part in PARTS {
        fs::create_dir_all(to.join(part))?;
        for entry in fs::read_dir(from.join(part))? {
            let entry = entry?;
            fs::copy(entry.path(), to.join(part).join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_c_is_a_unit_that_finds_the_headers_beside_it() {
        let place = tempfile::tempdir().expect("a directory");
        assert!(sources(place.path()).is_empty());
        for part in PARTS {
            fs::create_dir(place.path().join(part)).expect("a directory");
        }
        for name in ["lua/lapi.c", "lua/lapi.h", "sqlite/btree.c"] {
            fs::write(place.path().join(name), "").expect("a file");
        }
        let found = sources(place.path());
        assert_eq!(found, ["lua/lapi.c", "sqlite/btree.c"]);
        let Unit::Command { argv, remove, .. } = &units(&found)[1] else { panic!("a command") };
        assert!(argv.contains(&"-Isqlite".to_owned()), "{argv:?}");
        assert_eq!(remove, &["sqlite/btree.o"]);
        let copied = place.path().join("workspace");
        copy(place.path(), &copied).expect("copies");
        assert_eq!(sources(&copied), found);
    }
}
