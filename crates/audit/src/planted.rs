//! What a run leaves behind that a program outside may execute, or do the bidding of, because of
//! where it lies.

use labelling::Names;
use realpath::normal;
use rustix::io::Result;
use std::{
    collections::HashMap,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Paths that are kept of one kind, so that none hides another; of more, only their number.
const MOST: usize = 1000;

/// Entries that are looked at in directories that were moved.
const MOST_LOOKED_AT: usize = 100_000;

/// How often a file's place is asked for while directories are moved.
const MOST_TRIES: usize = 1000;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// It is a directory that came to a name, with what is in it: that is looked for at the end.
    Moved,
}

/// What has been made and changed so far.
#[derive(Debug, Default)]
pub struct Plantings {
    watch: Option<Watch>,
    seen: Mutex<Seen>,
    /// Directories are moved one after the other: which path became which is only known so.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Whether it is new, and why it matters, by path.
    planted: HashMap<PathBuf, (bool, Why)>,
    /// How many were kept of each kind, also of those that have gone.
    kept: HashMap<Why, usize>,
    more: u64,
    /// How often paths became others.
    moves: u64,
}

impl Plantings {
    /// Nothing yet; nothing ever, if nobody wants to know.
    pub fn new(watch: Option<Watch>) -> Self {
        Self { watch, ..Self::default() }
    }

    /// Whether anybody wants to know.
    pub fn are_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Holds up whoever else moves a directory, until what was moved is noted.
    pub fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let turn = || self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.are_watched().then(turn)
    }

    /// Notes what was made or written where `place` says, if it matters: asked again if something
    /// was moved meanwhile, as this may be a part of it.
    pub fn note_at(&self, place: impl Fn() -> Result<PathBuf>, is_new: bool) -> Result<()> {
        if !self.are_watched() {
            return Ok(());
        }
        for _ in 0..MOST_TRIES {
            let moves = self.lock().moves;
            self.note(&place()?, is_new);
            if self.lock().moves == moves {
                return Ok(());
            }
        }
        self.lock().more += 1;
        Ok(())
    }

    /// Notes what was made or written at `path`, if it matters.
    fn note(&self, path: &Path, is_new: bool) {
        let Some(watch) = &self.watch else { return };
        if let Some(why) = watch.why(path) {
            self.insert(path, is_new, why);
        }
    }

    /// Notes what matters whatever its name is.
    pub fn note_for(&self, path: &Path, why: Why) {
        if self.watch.as_ref().is_some_and(|watch| !watch.is_private(path)) {
            self.insert(path, true, why);
        }
    }

    /// Notes that a link at `path` was made, if it leads out of the directory that the run is
    /// about, or into packages.
    pub fn note_link(&self, path: &Path, target: &Path) {
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
    pub fn moved(&self, from: &Path, to: &Path, is_new: bool) {
        self.carry(&[(from, to)], is_new);
        self.note_moved(to, is_new);
    }

    /// Notes that two have changed places, with everything below.
    pub fn exchanged(&self, one: &Path, other: &Path) {
        self.carry(&[(one, other), (other, one)], false);
        self.note_moved(one, false);
        self.note_moved(other, false);
    }

    /// Gives what is known of what was moved its new paths.
    fn carry(&self, moves: &[(&Path, &Path)], is_new: bool) {
        let mut seen = self.lock();
        seen.moves += 1;
        let place = |path: &Path| {
            moves.iter().find_map(|(from, to)| {
                let rest = path.strip_prefix(from).ok()?;
                // Joining nothing would add a slash.
                let is_it = rest.as_os_str().is_empty();
                Some((if is_it { (*to).to_owned() } else { to.join(rest) }, is_it))
            })
        };
        let places = seen.planted.keys().filter_map(|old| Some((old.clone(), place(old)?)));
        let places: Vec<_> = places.collect();
        let mut carried = Vec::new();
        for (old, (new, is_it)) in places {
            if let Some((was_new, why)) = seen.planted.remove(&old) {
                carried.push((new, (if is_it { is_new } else { was_new }, why)));
            }
        }
        seen.planted.extend(carried);
    }

    fn note_moved(&self, to: &Path, is_new: bool) {
        let Some(watch) = &self.watch else { return };
        self.note(to, is_new);
        if watch.leads(to) {
            self.insert(to, is_new, Why::Moved);
        }
    }

    fn insert(&self, path: &Path, is_new: bool, why: Why) {
        self.lock().insert(path, is_new, why);
    }

    /// All of it, in the order of paths, and how many more there were.
    pub fn report(&self) -> (Vec<Planted>, u64) {
        let Some(watch) = &self.watch else { return (Vec::new(), 0) };
        let mut seen = self.lock();
        let tops: Vec<PathBuf> = seen.planted.keys().cloned().collect();
        let (found, unseen) = watch.below(tops);
        seen.more += unseen;
        for path in found {
            if !seen.planted.contains_key(&path)
                && let Some(why) = watch.why(&path)
            {
                seen.insert(&path, true, why);
            }
        }
        let planted = seen.planted.iter().filter_map(|(path, (is_new, why))| {
            let is_other = || std::fs::symlink_metadata(path).is_ok_and(|it| !it.is_symlink());
            // What came to a path later may be of another kind than what was there first.
            let why = match why {
                Why::Repository => Some(*why),
                Why::Link if !is_other() => Some(*why),
                _ => watch.why(path),
            };
            Some(Planted { path: path.clone(), is_new: *is_new, why: why? })
        });
        let mut planted: Vec<Planted> = planted.collect();
        planted.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        (planted, seen.more)
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn insert(&mut self, path: &Path, is_new: bool, why: Why) {
        if let Some(known) = self.planted.get_mut(path) {
            known.0 |= is_new;
            return;
        }
        let kept = self.kept.entry(why).or_default();
        if *kept >= MOST {
            self.more += 1;
            return;
        }
        *kept += 1;
        self.planted.insert(path.to_owned(), (is_new, why));
    }
}

impl Watch {
    fn is_private(&self, path: &Path) -> bool {
        self.private.iter().any(|private| path.starts_with(private))
    }

    /// Whether something that matters may lie below `path`, which does so by its name alone.
    fn leads(&self, path: &Path) -> bool {
        !self.is_private(path)
            && (self.trees.find(path, true).is_some()
                || self.trees.begins(path)
                || self.files.begins(path)
                || self.path.iter().any(|searched| searched.starts_with(path)))
    }

    /// What matters in directories that lead to it; and how many places could not be looked at.
    /// Nothing that is looked at is followed.
    fn below(&self, mut left: Vec<PathBuf>) -> (Vec<PathBuf>, u64) {
        left.retain(|top| {
            self.leads(top) && std::fs::symlink_metadata(top).is_ok_and(|it| it.is_dir())
        });
        let (mut found, mut unseen, mut looked_at) = (Vec::new(), 0, 0);
        while let Some(directory) = left.pop() {
            let entries = match std::fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(_) => {
                    unseen += 1;
                    continue;
                }
            };
            for entry in entries {
                let Ok(entry) = entry else {
                    unseen += 1;
                    break;
                };
                looked_at += 1;
                if looked_at > MOST_LOOKED_AT {
                    return (found, unseen + 1);
                }
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    left.extend(self.leads(&path).then_some(path));
                } else if self.why(&path).is_some() {
                    found.push(path);
                }
            }
        }
        (found, unseen)
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
    fn many_of_one_kind_hide_none_of_another() {
        let plantings = plantings();
        let many = (0..2 * MOST).map(|number| format!("/w/{number}/Makefile"));
        many.for_each(|path| plantings.note(Path::new(&path), true));
        plantings.note(Path::new("/w/.vscode/tasks.json"), true);
        plantings.note_for(Path::new("/w/x/HEAD"), Why::Repository);
        let report = plantings.report();
        assert_eq!((report.0.len(), report.1), (MOST + 2, MOST as u64));
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
        plantings.note(Path::new("/w/c/Makefile"), true);
        plantings.exchanged(Path::new("/w/c"), Path::new("/w/d"));
        plantings.exchanged(Path::new("/w/x"), Path::new("/w/d/Makefile"));
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
                ("/w/d/Makefile", false, Why::File(0)),
                ("/w/out", true, Why::Link),
                ("/w/sub", true, Why::Link)
            ]
        );
        assert_eq!(more, 0);
    }

    #[test]
    fn what_is_moved_meanwhile_is_noted_where_it_is() {
        let plantings = plantings();
        let asked = std::cell::Cell::new(0);
        let place = || {
            asked.set(asked.get() + 1);
            let path = if asked.get() == 1 { "/w/a/Makefile" } else { "/w/b/Makefile" };
            if asked.get() == 1 {
                plantings.moved(Path::new("/w/a"), Path::new("/w/b"), true);
            }
            Ok(path.into())
        };
        plantings.note_at(place, true).unwrap();
        let paths = plantings.report().0.into_iter().map(|planted| planted.path);
        assert!(paths.collect::<Vec<_>>().contains(&"/w/b/Makefile".into()));
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
