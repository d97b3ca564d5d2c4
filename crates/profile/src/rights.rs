//! Which rights a domain has to the files of a pattern: of all entries that cover it, from the
//! least to the most specific.

use crate::error::Problem;
use crate::pattern::Pattern;
use crate::source::TextSpan;
use std::path::Path;

/// The list of `[files]` that a pattern stands in. Order is strength: of two entries for one
/// pattern in one file, the greater has the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum List {
    Unguarded,
    Names,
    Read,
    Write,
    Exec,
    /// In no profile: what was granted stays, but for writing.
    Unwritten,
    Readonly,
    Deny,
    Hide,
}

impl List {
    /// Whether it takes rights away.
    pub(crate) fn restricts(self) -> bool {
        self >= Self::Unwritten
    }
}

/// Where a pattern stands to the directories for temporary files, of which a run has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Elsewhere,
    /// All of such a directory: the run's own.
    Whole,
    /// Something in one, by name: the machine's.
    Within,
}

impl Standing {
    /// Where `pattern` stands to `directories`.
    pub(crate) fn of(pattern: &Pattern, directories: &[&Path]) -> Self {
        let top = pattern.top().literal().unwrap_or_default();
        match directories.iter().find(|directory| Path::new(&top).starts_with(directory)) {
            Some(directory) if Path::new(&top) != *directory => Self::Within,
            Some(_) if !pattern.is_glob() => Self::Whole,
            _ => Self::Elsewhere,
        }
    }
}

/// One pattern of one list.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) pattern: Pattern,
    pub(crate) list: List,
    /// Depth in the chain of `extends`: greater for what extends than for what is extended, greater
    /// still for what a domain adds to the base domain.
    pub(crate) layer: usize,
    pub(crate) place: TextSpan,
    pub(crate) standing: Standing,
}

impl Entry {
    fn key(&self) -> (usize, usize, List) {
        (self.pattern.stem(), self.layer, self.list)
    }

    /// Whether it has the machine's files in the place of the run's own.
    fn is_of_machine(&self) -> bool {
        self.standing == Standing::Within
            && !matches!(self.list, List::Unguarded | List::Unwritten | List::Deny | List::Hide)
    }

    /// Whether it is only about the run's own files.
    fn is_of_run(&self) -> bool {
        self.standing == Standing::Whole && !self.list.restricts()
    }
}

/// Rights to the files of one pattern, each with the entry that gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) list: Option<TextSpan>,
    pub(crate) read: Option<TextSpan>,
    pub(crate) write: Option<TextSpan>,
    pub(crate) exec: Option<TextSpan>,
    pub(crate) denied: Option<TextSpan>,
    pub(crate) hidden: Option<TextSpan>,
    /// New files may be made, existing ones not be changed.
    pub(crate) make: Option<TextSpan>,
    /// No guard is set here.
    pub(crate) unguarded: Option<TextSpan>,
}

impl Rights {
    fn apply(&mut self, entry: &Entry) {
        let Entry { list, place, standing, .. } = *entry;
        let granted = |old: Self| Self { denied: None, hidden: None, ..old };
        match list {
            List::Unguarded => self.unguarded = Some(place),
            List::Names => *self = Self { list: Some(place), ..granted(*self) },
            List::Read => *self = Self { read: Some(place), ..granted(*self) },
            List::Write => *self = Self { write: Some(place), ..granted(*self) },
            List::Exec => *self = Self { exec: Some(place), ..granted(*self) },
            List::Unwritten => *self = self.unwritten(place, standing),
            List::Readonly => *self = Self { read: Some(place), write: None, ..granted(*self) },
            List::Deny => *self = Self { denied: Some(place), ..self.without_rights() },
            List::Hide => *self = Self { hidden: Some(place), ..self.without_rights() },
        }
    }

    /// Without writing, for the reason at `place`. What was granted with a directory of the run's
    /// own is not the machine's file there.
    fn unwritten(self, place: TextSpan, standing: Standing) -> Self {
        let written = self.write.filter(|_| standing != Standing::Whole);
        let readable = self.read.or(self.exec).or(written);
        Self { read: readable.map(|_| place), write: None, ..self }
    }

    fn without_rights(self) -> Self {
        Self { unguarded: self.unguarded, ..Self::default() }
    }

    /// What makes it readable: writing and executing imply it.
    pub(crate) fn readable(&self) -> Option<TextSpan> {
        self.read.or(self.write).or(self.exec)
    }
}

/// Patterns of one domain, with those that globs have below others: a whole home's worth of paths.
/// Each is compared with each.
const MOST: usize = 8192;

/// Entries of one domain in the order of applying.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries(Vec<Entry>);

impl Entries {
    /// Sorts `entries`, and lets each glob hold below the more specific patterns that would hide
    /// it: the rule with the longest literal stem labels a file, so `hide ${workspace}/**/.env`
    /// would lose against `write ${workspace}/src` without an entry of its own for
    /// `${workspace}/src/**/.env`.
    ///
    /// # Errors
    ///
    /// There are more than can be compared with each other; with a place where the last one comes
    /// from.
    pub(crate) fn new(mut entries: Vec<Entry>) -> Result<Self, (Problem, TextSpan)> {
        let mut residuals = Vec::new();
        for glob in entries.iter().filter(|entry| entry.pattern.is_glob()) {
            for other in entries.iter().filter(|other| loses_against(glob, other)) {
                for pattern in glob.pattern.residuals_below(&other.pattern) {
                    let layer = glob.layer.max(other.layer);
                    residuals.push(Entry { pattern, layer, ..glob.clone() });
                }
                if entries.len() + residuals.len() > MOST {
                    return Err((Problem::TooManyPatterns { most: MOST }, glob.place));
                }
            }
        }
        entries.extend(residuals);
        if let Some(last) = entries.get(MOST) {
            return Err((Problem::TooManyPatterns { most: MOST }, last.place));
        }
        entries.sort_by_key(Entry::key);
        entries.dedup_by(|a, b| a.pattern == b.pattern && a.list == b.list && a.layer == b.layer);
        Ok(Self(entries))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    /// The path of the entry at `place` that lets the files of `pattern` be written, as far as it
    /// has no glob.
    pub(crate) fn written_from(&self, place: TextSpan, pattern: &Pattern) -> Option<Pattern> {
        let writes = |entry: &&Entry| {
            entry.list == List::Write && entry.place == place && entry.pattern.covers(pattern)
        };
        self.0.iter().rfind(writes).map(|entry| entry.pattern.top())
    }

    /// The rights to the files of `pattern`.
    pub(crate) fn rights(&self, pattern: &Pattern) -> Rights {
        let mut rights = Rights::default();
        // Entries are sorted by their stems, and one with the longer stem covers no pattern.
        let candidates = self.0.iter().take_while(|entry| entry.pattern.stem() <= pattern.stem());
        let covering: Vec<&Entry> =
            candidates.filter(|entry| entry.pattern.covers(pattern)).collect();
        let is_of_machine = covering.iter().any(|entry| entry.is_of_machine());
        for entry in covering.iter().filter(|entry| !is_of_machine || !entry.is_of_run()) {
            rights.apply(entry);
        }
        rights
    }
}

/// Whether files of `glob` below `other` would be labelled by `other` though `glob` has a say
/// there.
fn loses_against(glob: &Entry, other: &Entry) -> bool {
    let says = glob.list.restricts() && other.list < List::Deny;
    let adds = !glob.list.restricts() && !other.list.restricts();
    (says || adds)
        && other.pattern.stem() > glob.pattern.stem()
        && !glob.pattern.covers(&other.pattern)
}
