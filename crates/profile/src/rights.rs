//! Which rights a domain has to the files of a pattern: of all entries that cover it, from the
//! least to the most specific.

use crate::error::Problem;
use crate::pattern::{Pattern, Steps};
use crate::source::TextSpan;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The list of `[files]` that a pattern stands in. Order is strength: of two entries for one
/// pattern in one file, the greater has the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    pub(crate) fn of(pattern: &Pattern, directories: &[PathBuf]) -> Self {
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
pub(crate) struct ListedPattern {
    pub(crate) pattern: Pattern,
    pub(crate) list: List,
    /// By depth in the chain of `extends`: greater for what extends than for what is extended, in
    /// one file greater for what the base domain has alone, and greater still, in all, for what a
    /// domain adds to the base domain.
    pub(crate) layer: usize,
    pub(crate) place: TextSpan,
    pub(crate) standing: Standing,
    /// Of a part of another entry, how specific it counts among the entries of its domain.
    pub(crate) rank: Option<usize>,
    /// It is a part because of what another domain, a program or a socket names.
    pub(crate) beside: bool,
    /// Of the base domain, and of no other that takes over what that has.
    pub(crate) alone: bool,
}

impl ListedPattern {
    fn rank(&self) -> usize {
        self.rank.unwrap_or_else(|| self.pattern.stem())
    }

    fn key(&self) -> (usize, usize, List) {
        (self.rank(), self.layer, self.list)
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
    /// Why it is not written, though all around it is. Nothing else is kept away by that.
    pub(crate) unwritten: Option<TextSpan>,
    /// New files may be made, existing ones not be changed.
    pub(crate) make: Option<TextSpan>,
    /// No guard is set here.
    pub(crate) unguarded: Option<TextSpan>,
}

impl Rights {
    /// What is left of them when `entry`, which restricts, holds as well.
    pub(crate) fn restricted_by(self, entry: &ListedPattern) -> Self {
        let place = Some(entry.place);
        match entry.list {
            List::Deny if self.hidden.is_none() => Self { denied: place, ..self.without_rights() },
            List::Hide => Self { hidden: place, ..self.without_rights() },
            _ => Self { read: self.readable(), write: None, make: None, ..self },
        }
    }

    fn apply(&mut self, entry: &ListedPattern) {
        let ListedPattern { list, place, standing, .. } = *entry;
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

    /// Why something is kept away.
    pub(crate) fn withheld(&self) -> Option<TextSpan> {
        self.hidden.or(self.denied).or(self.unwritten)
    }

    /// What makes it readable: writing and executing imply it.
    pub(crate) fn readable(&self) -> Option<TextSpan> {
        self.read.or(self.write).or(self.exec)
    }
}

/// Patterns of one domain, with those that globs have below others: a whole home's worth of paths.
/// Each is compared with each.
const MOST: usize = 8192;

/// Steps that a pattern counts for which is kept beside those that a profile names: all domains
/// together have what [`Steps::of_a_profile`] lets them, and not each of them [`MOST`].
const STEPS_OF_A_PATTERN: u32 = 200;

/// There are more patterns than can be compared; where the last comes from.
type TooMany = (Problem, TextSpan);

/// Entries of one domain in the order of applying.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries(Vec<ListedPattern>);

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
    pub(crate) fn new(entries: Vec<ListedPattern>, steps: &mut Steps) -> Result<Self, TooMany> {
        let mut all = Self(entries);
        let mut residuals = Vec::new();
        for glob in all.0.iter().filter(|entry| entry.pattern.is_glob()) {
            for other in all.0.iter().filter(|other| loses_against(glob, other)) {
                let left = glob.pattern.residuals(&other.pattern, steps);
                for pattern in left.map_err(|_| too_many(glob))? {
                    let (layer, rank) = (glob.layer.max(other.layer), Some(other.pattern.stem()));
                    residuals.push(ListedPattern { pattern, layer, rank, ..glob.clone() });
                }
                all.check(residuals.len(), glob)?;
            }
        }
        all.add(residuals, steps)?;
        Ok(all)
    }

    /// Lets each entry hold in `others`, which label files and say nothing here: patterns of other
    /// domains, programs and sockets, each with whether it restricts.
    ///
    /// # Errors
    ///
    /// As of [`Entries::new`].
    pub(crate) fn hold_below(
        &mut self,
        others: &[(Pattern, bool)],
        steps: &mut Steps,
    ) -> Result<(), TooMany> {
        let own: HashSet<&str> = self.0.iter().map(|entry| entry.pattern.regex()).collect();
        let others = others.iter().filter(|(pattern, _)| !own.contains(pattern.regex()));
        let others: Vec<_> = others.collect();
        let globs: Vec<_> = others.iter().copied().filter(|other| other.0.is_glob()).collect();
        let mut residuals = Vec::new();
        for entry in &self.0 {
            // A path loses nothing to another path.
            let others = if entry.pattern.is_glob() { &others } else { &globs };
            for (other, _) in others.iter().filter(|other| loses_label(entry, other)) {
                let left = entry.pattern.common_in(other, steps);
                for pattern in left.map_err(|_| too_many(entry))? {
                    let rank = Some(entry.rank());
                    residuals.push(ListedPattern { pattern, rank, beside: true, ..entry.clone() });
                }
                self.check(residuals.len(), entry)?;
            }
        }
        self.add(residuals, steps)
    }

    fn check(&self, more: usize, last: &ListedPattern) -> Result<(), TooMany> {
        if self.0.len() + more > MOST { Err(too_many(last)) } else { Ok(()) }
    }

    fn add(&mut self, residuals: Vec<ListedPattern>, steps: &mut Steps) -> Result<(), TooMany> {
        let key =
            |it: &ListedPattern| (it.pattern.regex().to_owned(), it.list, it.layer, it.rank());
        let mut known = HashSet::new();
        for entry in residuals {
            if known.insert(key(&entry)) {
                steps.take_many(STEPS_OF_A_PATTERN).map_err(|_| too_many(&entry))?;
                self.0.push(entry);
            }
        }
        if let Some(last) = self.0.get(MOST) {
            return Err(too_many(last));
        }
        self.0.sort_by_key(ListedPattern::key);
        Ok(())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ListedPattern> {
        self.0.iter()
    }

    /// The path of the entry at `place` that lets the files of `pattern` be written, as far as it
    /// has no glob.
    pub(crate) fn written_from(&self, place: TextSpan, pattern: &Pattern) -> Option<Pattern> {
        let writes = |entry: &&ListedPattern| {
            entry.list == List::Write && entry.place == place && entry.pattern.covers(pattern)
        };
        self.0.iter().rfind(writes).map(|entry| entry.pattern.top())
    }

    /// The entries that restrict, and may lose files to a pattern that is none of them.
    pub(crate) fn restricting(&self) -> impl Iterator<Item = &ListedPattern> {
        self.0.iter().filter(|entry| entry.list.restricts())
    }

    /// The regular expressions of the patterns that the domain names itself.
    pub(crate) fn named(&self) -> HashSet<&str> {
        self.0.iter().filter(|entry| !entry.beside).map(|entry| entry.pattern.regex()).collect()
    }

    /// The rights to the files of `pattern`, which are the machine's where one domain or another
    /// names them: all see the same files.
    pub(crate) fn rights(&self, pattern: &Pattern, is_of_machine: bool) -> Rights {
        let mut rights = Rights::default();
        for entry in self.covering(pattern).filter(|entry| !is_of_machine || !entry.is_of_run()) {
            rights.apply(entry);
        }
        rights
    }

    /// Whether an entry has the machine's files of `pattern` in the place of the run's own.
    pub(crate) fn are_of_machine(&self, pattern: &Pattern) -> bool {
        self.covering(pattern).any(ListedPattern::is_of_machine)
    }

    fn covering(&self, pattern: &Pattern) -> impl Iterator<Item = &ListedPattern> {
        // Entries are sorted by their ranks, and one with a higher rank covers no pattern.
        let candidates = self.0.iter().take_while(|entry| entry.rank() <= pattern.stem());
        candidates.filter(|entry| entry.pattern.covers(pattern))
    }
}

/// Whether files of `glob` below `other` would be labelled by `other` though `glob` has a say
/// there.
fn loses_against(glob: &ListedPattern, other: &ListedPattern) -> bool {
    let says = glob.list.restricts() && other.list < List::Deny;
    let adds = !glob.list.restricts() && !other.list.restricts();
    (says || adds)
        && other.pattern.stem() > glob.pattern.stem()
        && !glob.pattern.covers(&other.pattern)
}

/// Whether files of `entry` would be labelled by `other`, which says nothing in its domain.
fn loses_label(entry: &ListedPattern, (other, restricts): &(Pattern, bool)) -> bool {
    let is_tie = entry.pattern.stem() == other.stem();
    if is_tie && !(entry.list.restricts() && *restricts) {
        return false;
    }
    entry.pattern.may_lose(other)
}

fn too_many(last: &ListedPattern) -> TooMany {
    (Problem::TooManyPatterns { most: MOST }, last.place)
}
