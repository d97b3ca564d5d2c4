//! What a run leaves behind that a program outside may execute, or take orders from, because of
//! where it lies.

mod watch;

use labelling::Names;
use rustix::io::Result;
use std::{
    collections::{HashMap, HashSet},
    io::{Error, ErrorKind},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Paths that are kept of one kind, so that none hides another; of more, only their number.
const MOST: usize = 1000;

/// The same for links that lead nowhere else as they lie. Package managers make tens of thousands.
const MOST_WITHIN: usize = 100_000;

/// How often a file's place is asked for while directories are moved, and where nobody can tell it
/// for some other reason.
const MOST_TRIES: usize = 1000;
const MOST_FAILURES: usize = 3;

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
    /// The directory that the run is about: links within it are not reported.
    pub inside: PathBuf,
    /// What is about the sandbox alone: nobody outside looks there.
    pub private: Vec<PathBuf>,
    /// Links that were there with such a name: what each leads by, and to, with the link.
    pub led: HashMap<PathBuf, PathBuf>,
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
    /// It is a link that leads to where more is trusted than where it lies.
    Link,
    /// It is another link: it may come to lie where it leads elsewhere.
    Within,
    /// It is a directory that cannot be looked into: what is in it may matter.
    Unseen,
}

/// Whether that says of a path that nothing is there. Whatever else it says, something may be.
pub fn is_gone(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
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
    /// How many are kept of each kind.
    kept: HashMap<Why, usize>,
    /// Directories that came to another place, or could not be looked into before: what is in them
    /// is looked for at the end.
    tops: HashSet<(PathBuf, Look)>,
    more: u64,
    /// How often paths became others.
    moves: u64,
}

/// What is looked for in a directory at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Look {
    /// Names, in the directories that lead to them.
    Named,
    /// Links that lead elsewhere, at any depth.
    Links,
    /// All that matters, at any depth.
    All,
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
    pub fn note_at(&self, place: impl Fn() -> Result<PathBuf>, is_new: bool) {
        self.settled(place, |path| self.note(path, is_new));
    }

    /// Has `note` note the path that `place` says, until nothing was moved meanwhile. What has none
    /// that anybody can tell is counted.
    fn settled(&self, place: impl Fn() -> Result<PathBuf>, note: impl Fn(&Path)) {
        if !self.are_watched() {
            return;
        }
        let mut failures = 0;
        for _ in 0..MOST_TRIES {
            let moves = self.lock().moves;
            let found = place();
            if let Ok(path) = &found {
                note(path);
            }
            if self.lock().moves != moves {
                continue;
            }
            match found {
                Ok(_) => return,
                Err(_) if failures == MOST_FAILURES => break,
                Err(_) => failures += 1,
            }
        }
        self.lock().more += 1;
    }

    /// Notes what was made or written at `path`, if it matters.
    fn note(&self, path: &Path, is_new: bool) {
        let Some(watch) = &self.watch else { return };
        if let Some(why) = watch.why(path) {
            self.insert(path, is_new, why);
        }
    }

    /// Notes what matters whatever its name is.
    pub fn note_for(&self, place: impl Fn() -> Result<PathBuf>, why: Why) {
        self.settled(place, |path| self.insert_for(path, why));
    }

    fn insert_for(&self, path: &Path, why: Why) {
        if self.watch.as_ref().is_some_and(|watch| !watch.is_private(path)) {
            self.insert(path, true, why);
        }
    }

    /// Notes that a link has come to where `place` says.
    pub fn note_link(&self, place: impl Fn() -> Result<PathBuf>) {
        let why = |path: &Path| self.watch.as_ref().and_then(|watch| watch.why_link(path));
        // What was moved on is looked at where it comes to lie.
        self.settled(place, |path| self.insert_for(path, why(path).unwrap_or(Why::Within)));
    }

    /// Notes that what lies in the directory that `place` says may not have been seen before.
    pub fn opened(&self, place: impl Fn() -> Result<PathBuf>) {
        self.settled(place, |path| self.look(path, Look::All));
    }

    /// Forgets what was at `path`, if it is gone.
    pub fn removed(&self, path: &Path, is_gone: impl FnOnce() -> bool) {
        let mut seen = self.lock();
        // Else it was made anew meanwhile.
        if is_gone() {
            seen.take(path);
        }
    }

    /// Notes that what was at `from` is at `to`, with everything below; whether it replaced
    /// nothing. `None`: nobody can tell where that is.
    pub fn moved(&self, from: Option<&Path>, to: Option<&Path>, is_new: bool) {
        let Some(to) = to else {
            self.lock().moves += 1;
            return;
        };
        self.carry(&from.map(|from| (from, to)).into_iter().collect::<Vec<_>>(), is_new);
        self.note_moved(from, to, is_new);
    }

    /// Notes that two have changed places, with everything below.
    pub fn exchanged(&self, one: Option<&Path>, other: Option<&Path>) {
        if let (Some(one), Some(other)) = (one, other) {
            self.carry(&[(one, other), (other, one)], false);
            self.note_moved(Some(one), other, false);
            self.note_moved(Some(other), one, false);
        } else {
            self.moved(one, other, false);
            self.moved(other, one, false);
        }
    }

    /// Gives what is known of what was moved its new paths.
    fn carry(&self, moves: &[(&Path, &Path)], is_new: bool) {
        let Some(watch) = &self.watch else { return };
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
            if let Some((was_new, why)) = seen.take(&old) {
                carried.push((new, (if is_it { is_new } else { was_new }, why)));
            }
        }
        for (path, planted) in carried {
            if watch.keeps(&path, planted.1) {
                seen.put(path, planted);
            }
        }
        let tops = std::mem::take(&mut seen.tops);
        let new = |top: PathBuf| place(&top).map_or(top, |(new, _)| new);
        seen.tops = tops.into_iter().map(|(top, look)| (new(top), look)).collect();
    }

    fn note_moved(&self, from: Option<&Path>, to: &Path, is_new: bool) {
        let Some(watch) = &self.watch else { return };
        self.note(to, is_new);
        if watch.leads(to) {
            self.look(to, Look::Named);
        }
        match from {
            None => self.look(to, Look::All),
            Some(from) if from.parent() != to.parent() => self.look(to, Look::Links),
            Some(_) => {}
        }
    }

    /// Has a directory be looked into at the end.
    fn look(&self, path: &Path, look: Look) {
        let is_private = self.watch.as_ref().is_none_or(|watch| watch.is_private(path));
        if is_private || std::fs::symlink_metadata(path).is_ok_and(|it| !it.is_dir()) {
            return;
        }
        let mut seen = self.lock();
        if seen.tops.len() < MOST_WITHIN {
            seen.tops.insert((path.to_owned(), look));
        } else {
            seen.more += 1;
        }
    }

    fn insert(&self, path: &Path, is_new: bool, why: Why) {
        self.lock().insert(path, is_new, why);
    }

    /// All of it, in the order of paths, and how many more there were.
    pub fn report(&self) -> (Vec<Planted>, u64) {
        let Some(watch) = &self.watch else { return (Vec::new(), 0) };
        let mut seen = self.lock();
        let by_name = seen.planted.keys().filter(|path| watch.leads(path));
        let named: Vec<_> = by_name.map(|path| (path.clone(), Look::Named)).collect();
        let tops = seen.tops.iter().cloned().chain(named).collect();
        let below = watch.below(&tops);
        seen.more += below.left_out;
        for path in below.found {
            if !seen.planted.contains_key(&path)
                && let Some(why) = watch.why(&path).or_else(|| watch.why_link(&path))
            {
                seen.insert(&path, true, why);
            }
        }
        let planted = seen.planted.iter().filter_map(|(path, (is_new, why))| {
            // What came to a path later may be of another kind than what was there first.
            let why = match why {
                Why::Repository => Some(*why),
                Why::Link | Why::Within => {
                    let leads = watch.why_link(path).filter(|why| *why == Why::Link);
                    leads.or_else(|| watch.why(path))
                }
                _ => watch.why(path),
            };
            Some(Planted { path: path.clone(), is_new: *is_new, why: why? })
        });
        let unseen = below.unseen.into_iter();
        let unseen = unseen.map(|path| Planted { path, is_new: true, why: Why::Unseen });
        let mut planted: Vec<Planted> = planted.chain(unseen).collect();
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
        let most = if why == Why::Within { MOST_WITHIN } else { MOST };
        if self.kept.get(&why).is_some_and(|kept| *kept >= most) {
            self.more += 1;
            return;
        }
        self.put(path.to_owned(), (is_new, why));
    }

    fn put(&mut self, path: PathBuf, planted: (bool, Why)) {
        self.take(&path);
        *self.kept.entry(planted.1).or_default() += 1;
        self.planted.insert(path, planted);
    }

    fn take(&mut self, path: &Path) -> Option<(bool, Why)> {
        let taken = self.planted.remove(path)?;
        if let Some(kept) = self.kept.get_mut(&taken.1) {
            *kept -= 1;
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests;
