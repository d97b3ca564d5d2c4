//! A walk through the machine for what looks like a secret; and what it has not come to.

use crate::secrets::{holds_secrets, is_package, looks_like_one};
use proc::Mounts;
use std::{
    collections::HashSet,
    fs,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

/// Entries that are looked at outside of the home, and of those in one directory around it.
const MOST_OUTSIDE: usize = 100_000;
const MOST_OF_ONE: usize = 10_000;

/// What is found of secrets by their names; more than anybody has.
const MOST_FOUND: usize = 1_000;

/// Directories that were not looked through are told by so many at most.
const MOST_LEFT: usize = 256;

/// What is found in `home`, at most `entries` of which are looked at, and in the rest of the
/// machine, but for directories that are to `skip`; and the directories that were not looked
/// through.
pub(crate) fn everywhere(
    home: &Path,
    entries: usize,
    skip: &dyn Fn(&Path) -> bool,
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let mut own = Search::new((entries, MOST_FOUND), skip);
    // What the home lies on has to answer anyway.
    own.mounts.trust(home);
    own.walk(home);
    let mut rest = Search::new((0, MOST_FOUND), skip);
    let mut left = MOST_OUTSIDE;
    for directory in beside(home) {
        let given = left.min(MOST_OF_ONE);
        rest.entries = given;
        rest.walk(&directory);
        left -= given - rest.entries;
    }
    ([own.found, rest.found].concat(), [few(own.left, home), few(rest.left, home)].concat())
}

fn is_deputy(path: &Path) -> bool {
    path.to_str().is_some_and(|path| profile::power(path).is_some())
}

/// The directories beside `home`, and beside those around it, the nearest first: all of the machine
/// but `home`.
fn beside(home: &Path) -> Vec<PathBuf> {
    let around: Vec<&Path> = home.ancestors().collect();
    let beside = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let paths = entries.filter(is_dir).map(|entry| entry.path());
        let mut paths: Vec<PathBuf> =
            paths.filter(|path| !around.contains(&path.as_path())).collect();
        paths.sort();
        paths
    };
    around.iter().skip(1).flat_map(|directory| beside(directory)).collect()
}

/// The same, in at most [`MOST_LEFT`] directories, if need be those around them; none of which
/// holds `home`, unless `home` itself was not looked through.
fn few(mut left: Vec<PathBuf>, home: &Path) -> Vec<PathBuf> {
    let depth = |path: &PathBuf| path.components().count();
    loop {
        left.sort();
        left.dedup();
        let all: HashSet<PathBuf> = left.iter().cloned().collect();
        left.retain(|path| !path.ancestors().skip(1).any(|around| all.contains(around)));
        let deepest = left.iter().map(depth).max().unwrap_or(0);
        if left.len() <= MOST_LEFT {
            return left;
        }
        let before = left.clone();
        for path in left.iter_mut().filter(|path| depth(path) == deepest) {
            if let Some(parent) = path.parent().filter(|at| *at == home || !home.starts_with(at)) {
                *path = parent.to_owned();
            }
        }
        if left == before {
            return left;
        }
    }
}

/// A walk through directories.
pub(crate) struct Search<'a> {
    /// Entries that may still be looked at.
    entries: usize,
    /// How many may be found at most.
    most: usize,
    skip: &'a dyn Fn(&Path) -> bool,
    mounts: Mounts,
    pub(crate) found: Vec<PathBuf>,
    pub(crate) left: Vec<PathBuf>,
}

impl<'a> Search<'a> {
    pub(crate) fn new((entries, most): (usize, usize), skip: &'a dyn Fn(&Path) -> bool) -> Self {
        let (found, left) = Default::default();
        Self { entries, most, skip, mounts: Mounts::own(), found, left }
    }

    pub(crate) fn walk(&mut self, directory: &Path) {
        self.walk_those(directory, &|_| true);
    }

    /// The same, but of the entries of `root` itself only those whose names are `meant`, with all
    /// that is below them.
    pub(crate) fn walk_those(&mut self, root: &Path, meant: &dyn Fn(&str) -> bool) {
        let mut stack = vec![root.to_owned()];
        while let Some(directory) = stack.pop() {
            if is_package(&directory) || (self.skip)(&directory) {
                continue;
            }
            if self.is_over() || self.mounts.is_distant(&directory) {
                self.left.push(directory);
                continue;
            }
            let mut entries: Vec<_> = fs::read_dir(&directory)
                .into_iter()
                .flatten()
                .flatten()
                .take(self.entries)
                .collect();
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
            self.entries -= entries.len();
            for entry in entries {
                if directory == root && !meant(&entry.file_name().to_string_lossy()) {
                    continue;
                }
                let path = entry.path();
                match entry.file_type() {
                    _ if self.found.len() >= self.most => break,
                    Ok(kind) if kind.is_dir() => match holds_secrets(&path) {
                        true => self.found.push(path),
                        false => stack.push(path),
                    },
                    Ok(kind) if kind.is_socket() && is_deputy(&path) => self.found.push(path),
                    Ok(_) if looks_like_one(&path) => self.found.push(path),
                    _ => {}
                }
            }
            if self.is_over() {
                self.left.push(directory);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.entries == 0 || self.found.len() >= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secrets;

    #[test]
    fn what_is_not_looked_through_is_said_and_holds_no_home() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["home/me/a", "home/me/b/c", "home/you", "srv/tls", "srv/skipped"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["home/me/x.pem", "home/me/b/c/.env", "home/you/id_rsa", "srv/tls/server.key"] {
            fs::write(at(name), "").unwrap();
        }
        fs::write(at("srv/skipped/y.key"), "").unwrap();
        // All that lies beside the made-up machine.
        let skip = |path: &Path| !path.starts_with(place.path()) || path.ends_with("skipped");
        let found = Secrets::default().everywhere(&at("home/me"), &skip);
        let all = ["home/me/b/c/.env", "home/me/x.pem", "home/you/id_rsa", "srv/tls/server.key"];
        assert_eq!((found.files, found.left), (all.map(at).to_vec(), Vec::new()));

        let mut search = Search::new((3, 10), &skip);
        search.walk(&at("home/me"));
        assert_eq!(few(search.left, &at("home/me")), [at("home/me")]);
        let many: Vec<PathBuf> = (0..1_000).map(|n| at(&format!("srv/a/{n}/x"))).collect();
        assert_eq!(few(many, &at("home/me")), [at("srv/a")]);
    }
}
