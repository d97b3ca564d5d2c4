//! What a run leaves behind that a program outside may execute, or take orders from, because of
//! where it lies.

use labelling::Names;
use realpath::{climbs, normal};
use rustix::io::Result;
use std::{
    collections::HashMap,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Paths that are kept of one kind, so that none hides another; of more, only their number.
const MOST: usize = 1000;

/// The same for links that lead nowhere else as they lie. Package managers make tens of thousands.
const MOST_WITHIN: usize = 100_000;

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
    /// How many are kept of each kind.
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
        self.settled(place, |path| self.note(path, is_new))
    }

    /// Has `note` note the path that `place` says, until nothing was moved meanwhile.
    fn settled(&self, place: impl Fn() -> Result<PathBuf>, note: impl Fn(&Path)) -> Result<()> {
        if !self.are_watched() {
            return Ok(());
        }
        for _ in 0..MOST_TRIES {
            let moves = self.lock().moves;
            note(&place()?);
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

    /// Notes that a link has come to where `place` says.
    pub fn note_link(&self, place: impl Fn() -> Result<PathBuf>) -> Result<()> {
        let why = |path: &Path| self.watch.as_ref().and_then(|watch| watch.why_link(path));
        // What was moved on is looked at where it comes to lie.
        self.settled(place, |path| self.note_for(path, why(path).unwrap_or(Why::Within)))
    }

    /// Forgets what was at `path`, if nothing is there any more.
    pub fn removed(&self, path: &Path) {
        let mut seen = self.lock();
        // Else it was made anew meanwhile.
        if std::fs::symlink_metadata(path).is_err() {
            seen.take(path);
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

impl Watch {
    fn is_private(&self, path: &Path) -> bool {
        self.private.iter().any(|private| path.starts_with(private))
    }

    /// Whether something that matters may lie below `path`, which does so by its name alone.
    fn leads(&self, path: &Path) -> bool {
        !self.is_private(path) && (self.trees.find(path, true).is_some() || self.begins(path))
    }

    /// Whether what is looked for begins with `path`.
    fn begins(&self, path: &Path) -> bool {
        self.trees.begins(path)
            || self.files.begins(path)
            || self.path.iter().any(|searched| searched.starts_with(path))
    }

    /// Why the link at `path` matters, as it lies now; `None` if there is none. It does if it leads
    /// out of the directory that the run is about, or into packages, or stands where a directory
    /// would with what is looked for.
    fn why_link(&self, path: &Path) -> Option<Why> {
        let target = std::fs::read_link(path).ok()?;
        let to = path.parent()?.join(&target);
        let is_of_package = |path: &Path| self.packages.find(path, true).is_some();
        let is_led = |leads_to: &Path| {
            let leaves = !leads_to.starts_with(&self.inside);
            let enters = is_of_package(leads_to) && !is_of_package(path);
            (leaves || enters) && !self.is_private(leads_to)
        };
        // Where it climbs from something that it has named, its words alone do not say where to.
        let end = || realpath::way(&to).pop();
        let is_led =
            is_led(&normal(&to)) || climbs(&target) && end().is_none_or(|end| is_led(&end));
        Some(if is_led || self.begins(path) { Why::Link } else { Why::Within })
    }

    /// Whether what was noted for `why` still has to be known where it was moved to.
    fn keeps(&self, path: &Path, why: Why) -> bool {
        match why {
            Why::Repository | Why::Link | Why::Within => true,
            Why::Moved => self.leads(path),
            // It may come back from where nobody outside looks.
            Why::Tree(_) | Why::File(_) | Why::Path => self.why_name(path).is_some(),
        }
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
        if self.is_private(path) { None } else { self.why_name(path) }
    }

    fn why_name(&self, path: &Path) -> Option<Why> {
        let by_link = |above: &Path| {
            let (link, rest) = (self.led.get(above)?, path.strip_prefix(above).ok()?);
            // Joining nothing would add a slash.
            let is_it = rest.as_os_str().is_empty();
            self.why_own_name(&if is_it { link.clone() } else { link.join(rest) })
        };
        self.why_own_name(path).or_else(|| path.ancestors().find_map(by_link))
    }

    /// The same, by no link.
    fn why_own_name(&self, path: &Path) -> Option<Why> {
        let by_name = || self.files.find(path, false).map(Why::File);
        self.trees.find(path, true).map(Why::Tree).or_else(by_name).or_else(|| {
            let directory = path.parent()?;
            self.path.iter().any(|searched| searched == directory).then_some(Why::Path)
        })
    }
}

#[cfg(test)]
mod tests;
