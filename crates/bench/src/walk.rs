//! The walk: many files opened, looked at and closed, as a search or a backup does.

use rustix::{
    fs::{Access, AtFlags, CWD, Mode, OFlags, access, fstat, openat, statat},
    io::read,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Files of both trees.
pub(crate) const FILES: usize = 2 * TREE_FILES;

/// The tree of the system that is walked beside the workspace's own.
const SYSTEM_TREE: &str = "/usr/include";

/// Files taken from each tree.
const TREE_FILES: usize = 2000;

/// Writes the workspace's own tree: 2,000 small files in 40 directories.
///
/// # Errors
///
/// Whatever the file system says.
pub(crate) fn write_tree(workspace: &Path) -> io::Result<()> {
    for directory in 0..40 {
        let directory = workspace.join(format!("tree/directory{directory:02}"));
        fs::create_dir_all(&directory)?;
        for file in 0..TREE_FILES / 40 {
            fs::write(directory.join(format!("file{file:02}.txt")), "a line of text\n".repeat(40))?;
        }
    }
    Ok(())
}

/// The files that are walked over: the workspace's and the system's.
///
/// # Errors
///
/// When there are none, or they cannot be listed.
pub(crate) fn paths(workspace: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for tree in [workspace.join("tree"), SYSTEM_TREE.into()].iter().filter(|tree| tree.is_dir()) {
        let mut found = Vec::new();
        collect(tree, &mut found)?;
        paths.append(&mut found);
    }
    if paths.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no tree to walk over"));
    }
    Ok(paths)
}

/// Visits `count` of `paths` from the one at `from` on, and begins anew behind the last.
///
/// # Errors
///
/// The first error of any call.
pub(crate) fn visit_some(paths: &[PathBuf], from: usize, count: usize) -> io::Result<()> {
    paths.iter().cycle().skip(from).take(count).try_for_each(|path| visit(path))
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type()?;
        if found.len() >= TREE_FILES {
            break;
        }
        if kind.is_dir() {
            collect(&entry.path(), found)?;
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn visit(path: &Path) -> io::Result<()> {
    let mut buffer = [0; 4096];
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    fstat(&file)?;
    read(&file, &mut buffer)?;
    drop(file);
    access(path, Access::READ_OK)?;
    statat(CWD, path, AtFlags::empty())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_visits_its_own_tree() -> io::Result<()> {
        let workspace = tempfile::tempdir()?;
        write_tree(workspace.path())?;
        let mut found = Vec::new();
        collect(workspace.path(), &mut found)?;
        assert_eq!(found.len(), TREE_FILES);
        let paths = paths(workspace.path())?;
        assert!(paths.len() >= TREE_FILES);
        visit_some(&paths, TREE_FILES - 1, 3)?;
        Ok(())
    }
}
