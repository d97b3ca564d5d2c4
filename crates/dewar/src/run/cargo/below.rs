//! Configuration of Cargo in directories below the workspace, where a command may go (`cargo -C`,
//! `cd sub && cargo`).

use super::{
    config::{self, Config, Unread},
    end_of,
};
use std::{
    collections::{HashSet, VecDeque},
    fs,
    path::{Path, PathBuf},
};

/// So many entries are looked at.
const MOST_ENTRIES: usize = 200_000;

/// So many files are looked for.
const MOST_FILES: usize = 10_000;

/// What was found.
#[derive(Default)]
pub(super) struct Below {
    pub(super) configs: Vec<Config>,
    pub(super) unread: Vec<Unread>,
    /// Directories that were not looked through any more.
    pub(super) left: Vec<PathBuf>,
}

impl Below {
    /// Looks through `workspace` but for Cargo's `home`, the nearest first. Files that were
    /// `looked` for are not read again.
    pub(super) fn of(workspace: &Path, home: &Path, looked: &mut HashSet<PathBuf>) -> Self {
        Self::within(MOST_ENTRIES, (workspace, home), looked)
    }

    fn within(
        most: usize,
        (workspace, home): (&Path, &Path),
        looked: &mut HashSet<PathBuf>,
    ) -> Self {
        let mut below = Self::default();
        let mut waiting = VecDeque::from([workspace.to_owned()]);
        let mut entries = 0;
        while let Some(directory) = waiting.pop_front() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                entries += 1;
                if entries > most || looked.len() > MOST_FILES {
                    waiting.push_front(directory);
                    below.left = waiting.into();
                    return below;
                }
                if entry.path() == home {
                    continue;
                }
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if entry.file_name() == ".cargo" && end_of(&entry.path()) != home {
                    let read = config::read_all(&entry.path(), looked, &mut below.configs);
                    below.unread.extend(read.err());
                }
                if is_directory && !is_passed_over(&directory, &entry.path()) {
                    waiting.push_back(entry.path());
                }
            }
        }
        below
    }
}

/// Git's own files, and what Cargo has built: there is much, and no project in it.
fn is_passed_over(directory: &Path, entry: &Path) -> bool {
    entry.ends_with(".git")
        || (entry.ends_with("target")
            && directory.join("Cargo.toml").exists()
            && entry.join("CACHEDIR.TAG").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beyond_the_bound_is_named() {
        let workspace = tempfile::tempdir().unwrap();
        let place = |name: &str| workspace.path().join(name);
        for (name, text) in [("a/.cargo/config.toml", "[build]"), ("b/.cargo/config", "[")] {
            fs::create_dir_all(place(name).parent().unwrap()).unwrap();
            fs::write(place(name), text).unwrap();
        }
        let home = place("b/.cargo");
        let all = Below::of(workspace.path(), Path::new("/none"), &mut HashSet::new());
        assert_eq!((all.configs.len(), all.unread.len(), all.left.len()), (1, 1, 0));
        let all = Below::of(workspace.path(), &home, &mut HashSet::new());
        assert_eq!((all.configs.len(), all.unread.len()), (1, 0), "the user's own is not judged");
        let some = Below::within(2, (workspace.path(), &home), &mut HashSet::new());
        assert_eq!((some.configs.len(), some.unread.len()), (0, 0));
        assert_eq!(some.left.len(), 2, "{:?}", some.left);
    }
}
