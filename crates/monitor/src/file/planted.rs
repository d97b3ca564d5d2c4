//! What a run leaves behind that a program outside may execute, or do the bidding of, because of
//! where it lies.

use crate::label::normal;
use labelling::Names;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Paths that are kept; of more, only their number.
const MOST: usize = 10_000;

/// What to look for while a command runs.
#[derive(Debug, Default)]
pub struct Watch {
    /// Names that programs outside trust, at any depth, with everything below.
    pub trees: Names,
    /// The same, without what is below.
    pub files: Names,
    /// Directories of packages, where less is kept from being made: a link from elsewhere into one
    /// has it found elsewhere.
    pub packages: Names,
    /// Directories that a shell outside looks for programs in.
    pub path: Vec<PathBuf>,
    /// The directory that the run is about: links within it are no news.
    pub inside: PathBuf,
    /// What is about the sandbox alone: nobody outside looks there.
    pub private: Vec<PathBuf>,
}

/// Something that was made or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planted {
    /// Where it lies.
    pub path: PathBuf,
    /// It was not there before.
    pub is_new: bool,
    /// Why it matters.
    pub why: Why,
}

/// Why something that was made or changed matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A program trusts the name of it, or of a directory around it: its index in [`Watch::trees`].
    Tree(usize),
    /// A program trusts its name: its index in [`Watch::files`].
    File(usize),
    /// It is a part of a Git repository that has come to be.
    Repository,
    /// It lies in a directory that programs are looked for in.
    Path,
    /// It is a link.
    Link,
}

/// What has been made and changed so far.
#[derive(Debug, Default)]
pub(crate) struct Plantings {
    watch: Option<Watch>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Whether it is new, and why it matters, by path.
    planted: HashMap<PathBuf, (bool, Why)>,
    more: u64,
}

impl Plantings {
    pub(crate) fn new(watch: Option<Watch>) -> Self {
        Self { watch, seen: Mutex::default() }
    }

    /// Whether anybody wants to know.
    pub(crate) fn are_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Notes what was made or written at `path`, if it matters.
    pub(crate) fn note(&self, path: &Path, is_new: bool) {
        let Some(watch) = &self.watch else { return };
        if let Some(why) = watch.why(path) {
            self.insert(path, is_new, why);
        }
    }

    /// Notes what matters whatever its name is.
    pub(crate) fn note_for(&self, path: &Path, why: Why) {
        if self.watch.as_ref().is_some_and(|watch| !watch.is_private(path)) {
            self.insert(path, true, why);
        }
    }

    /// Notes that a link at `path` was made, if it leads out of the directory that the run is
    /// about, or into packages.
    pub(crate) fn note_link(&self, path: &Path, target: &Path) {
        let Some(watch) = &self.watch else { return };
        let leads_to = normal(&path.parent().unwrap_or(path).join(target));
        let is_of_package = |path: &Path| watch.packages.find(path, true).is_some();
        let leaves = !leads_to.starts_with(&watch.inside);
        let enters = is_of_package(&leads_to) && !is_of_package(path);
        if (leaves || enters) && !watch.is_private(&leads_to) {
            self.note_for(path, Why::Link);
        }
    }

    /// Notes that what was at `from` is at `to`, with everything below; whether it replaced
    /// nothing.
    pub(crate) fn moved(&self, from: &Path, to: &Path, is_new: bool) {
        if !self.are_watched() {
            return;
        }
        let mut seen = self.lock();
        let below: Vec<PathBuf> =
            seen.planted.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for old in below {
            let (Some((was_new, why)), Ok(rest)) =
                (seen.planted.remove(&old), old.strip_prefix(from))
            else {
                continue;
            };
            // Joining nothing would add a slash.
            let is_it = rest.as_os_str().is_empty();
            let (new, is_new) =
                if is_it { (to.to_owned(), is_new) } else { (to.join(rest), was_new) };
            seen.planted.insert(new, (is_new, why));
        }
        drop(seen);
        self.note(to, is_new);
    }

    fn insert(&self, path: &Path, is_new: bool, why: Why) {
        let mut seen = self.lock();
        if let Some(known) = seen.planted.get_mut(path) {
            known.0 |= is_new;
        } else if seen.planted.len() < MOST {
            seen.planted.insert(path.to_owned(), (is_new, why));
        } else {
            seen.more += 1;
        }
    }

    /// All of it, in the order of paths, and how many more there were.
    pub(crate) fn report(&self) -> (Vec<Planted>, u64) {
        let seen = self.lock();
        let planted = seen.planted.iter();
        let planted = planted.map(|(path, (is_new, why))| Planted {
            path: path.clone(),
            is_new: *is_new,
            why: *why,
        });
        let mut planted: Vec<Planted> = planted.collect();
        planted.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        (planted, seen.more)
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    fn is_private(&self, path: &Path) -> bool {
        self.private.iter().any(|private| path.starts_with(private))
    }

    fn why(&self, path: &Path) -> Option<Why> {
        if self.is_private(path) {
            return None;
        }
        let by_name = || self.files.find(path, false).map(Why::File);
        self.trees.find(path, true).map(Why::Tree).or_else(by_name).or_else(|| {
            let directory = path.parent()?;
            self.path.iter().any(|searched| searched == directory).then_some(Why::Path)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plantings() -> Plantings {
        Plantings::new(Some(Watch {
            trees: Names::new([".vscode"]),
            files: Names::new(["Makefile"]),
            packages: Names::new(["node_modules"]),
            path: vec!["/w/bin".into()],
            inside: "/w".into(),
            private: vec!["/tmp".into()],
        }))
    }

    #[test]
    fn what_matters_is_kept_once_and_found_where_it_was_moved_to() {
        let plantings = plantings();
        plantings.note(Path::new("/w/a/Makefile"), false);
        plantings.note(Path::new("/w/a/Makefile"), true);
        plantings.note(Path::new("/w/bin/tool"), true);
        plantings.note(Path::new("/w/main.c"), true);
        plantings.note(Path::new("/tmp/Makefile"), true);
        plantings.note_link(Path::new("/w/in"), Path::new("a/../b"));
        plantings.note_link(Path::new("/w/out"), Path::new("../etc"));
        plantings.note_link(Path::new("/w/sub"), Path::new("node_modules/x"));
        plantings.note_link(Path::new("/w/node_modules/.bin/x"), Path::new("../x/bin"));
        plantings.note(Path::new("/w/.vscode/x"), true);
        plantings.note(Path::new("/w/makefile/x"), true);
        plantings.moved(Path::new("/w/a"), Path::new("/w/b"), true);
        plantings.moved(Path::new("/w/.vscode/x"), Path::new("/w/.vscode/y"), false);
        let (planted, more) = plantings.report();
        let planted: Vec<_> =
            planted.iter().map(|it| (it.path.to_str().unwrap(), it.is_new, it.why)).collect();
        assert_eq!(
            planted,
            [
                ("/w/.vscode/y", false, Why::Tree(0)),
                ("/w/b/Makefile", true, Why::File(0)),
                ("/w/bin/tool", true, Why::Path),
                ("/w/out", true, Why::Link),
                ("/w/sub", true, Why::Link)
            ]
        );
        assert_eq!(more, 0);
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let plantings = plantings();
        for number in 0..MOST + 5 {
            plantings.note(&PathBuf::from(format!("/w/{number}/Makefile")), true);
        }
        let (planted, more) = plantings.report();
        assert_eq!((planted.len(), more), (MOST, 5));
    }
}
