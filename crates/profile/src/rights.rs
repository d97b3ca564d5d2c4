//! Which rights a domain has to the files of a pattern: of all entries that cover it, from the
//! least to the most specific; and what amendments have made of them.

use crate::amendment::{AmendmentKind, Clause, ClauseObject, PathUse};
use crate::pattern::Pattern;
use crate::source::TextSpan;

/// The list of `[files]` that a pattern stands in. Order is strength: of two entries for one
/// pattern in one file, the greater has the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum List {
    Unguarded,
    Names,
    Read,
    Write,
    Exec,
    Readonly,
    Deny,
    Hide,
}

impl List {
    /// Whether it takes rights away.
    pub(crate) fn restricts(self) -> bool {
        self >= Self::Readonly
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
}

impl Entry {
    fn key(&self) -> (usize, usize, List) {
        (self.pattern.stem(), self.layer, self.list)
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
    fn apply(&mut self, list: List, place: TextSpan) {
        let granted = |old: Self| Self { denied: None, hidden: None, ..old };
        match list {
            List::Unguarded => self.unguarded = Some(place),
            List::Names => *self = Self { list: Some(place), ..granted(*self) },
            List::Read => *self = Self { read: Some(place), ..granted(*self) },
            List::Write => *self = Self { write: Some(place), ..granted(*self) },
            List::Exec => *self = Self { exec: Some(place), ..granted(*self) },
            List::Readonly => *self = Self { read: Some(place), write: None, ..granted(*self) },
            List::Deny => *self = Self { denied: Some(place), ..self.without_rights() },
            List::Hide => *self = Self { hidden: Some(place), ..self.without_rights() },
        }
    }

    fn without_rights(self) -> Self {
        Self { unguarded: self.unguarded, ..Self::default() }
    }

    /// What makes it readable: writing and executing imply it.
    pub(crate) fn readable(&self) -> Option<TextSpan> {
        self.read.or(self.write).or(self.exec)
    }
}

/// What amendments have taken from a domain, each with the one that did; and the connecting that
/// one gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) everything: Option<TextSpan>,
    pub(crate) write: Option<TextSpan>,
    pub(crate) exec: Option<TextSpan>,
    pub(crate) connect: Option<TextSpan>,
    pub(crate) connect_given: Option<TextSpan>,
}

/// What amendments have come to for some files, whatever the profile grants there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Amended {
    pub(crate) taken: Taken,
    given: Rights,
}

impl Amended {
    /// What `clauses`, in their order, come to.
    pub(crate) fn by<'a>(clauses: impl Iterator<Item = &'a Clause>) -> Self {
        let mut amended = Self::default();
        clauses.for_each(|clause| amended.apply(clause));
        amended
    }

    /// Goes on with one more clause.
    pub(crate) fn apply(&mut self, clause: &Clause) {
        match &clause.object {
            ClauseObject::Paths(uses, _) if clause.kind == AmendmentKind::Revoke => {
                self.revoke(*uses, clause.place);
            }
            ClauseObject::Paths(uses, _) => self.grant(*uses, clause.place),
            ClauseObject::All if clause.kind == AmendmentKind::Grant => {
                let connect_given = self.taken.connect_given;
                self.taken = Taken { connect_given, ..Taken::default() };
            }
            _ => {}
        }
    }

    fn revoke(&mut self, uses: PathUse, place: TextSpan) {
        let (taken, given, place) = (&mut self.taken, &mut self.given, Some(place));
        match uses {
            PathUse::Everything => {
                *taken = Taken {
                    everything: place,
                    write: place,
                    exec: place,
                    connect: place,
                    connect_given: None,
                };
                *given = Rights::default();
            }
            PathUse::Write => {
                taken.write = place;
                *given = Rights { read: given.readable(), write: None, ..*given };
            }
            PathUse::Exec => taken.exec = place,
            PathUse::Connect => *taken = Taken { connect: place, connect_given: None, ..*taken },
        }
    }

    /// Takes revocations back; where there are none, gives.
    fn grant(&mut self, uses: PathUse, place: TextSpan) {
        let (taken, given, place) = (&mut self.taken, &mut self.given, Some(place));
        match uses {
            PathUse::Everything if taken.files() => {
                let apart = taken.connect.filter(|place| Some(*place) != taken.everything);
                *taken = Taken { connect: apart, ..Taken::default() };
            }
            PathUse::Everything => given.read = place,
            PathUse::Write if taken.write.is_some() => {
                *taken = Taken { everything: None, write: None, ..*taken };
            }
            PathUse::Write => given.write = place,
            PathUse::Exec if taken.exec.is_some() => {
                *taken = Taken { everything: None, exec: None, ..*taken };
            }
            // What may be executed at most is settled in the kernel when a run starts.
            PathUse::Exec => {}
            PathUse::Connect if taken.connect.is_some() => taken.connect = None,
            PathUse::Connect => taken.connect_given = place,
        }
    }

    /// What is left of `rights`, and what was given where the profile does not deny.
    pub(crate) fn of(&self, rights: Rights) -> Rights {
        self.taken.from(rights, self.given)
    }

    /// Whether the same is taken and given, by whichever amendments: then every further one comes
    /// to the same, too.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let uses = |it: &Self| {
            let Taken { everything, write, exec, connect, connect_given } = it.taken;
            let apart = connect.is_some() && connect != everything;
            let rights =
                [everything, write, exec, connect, connect_given, it.given.read, it.given.write];
            (rights.map(|place| place.is_some()), apart)
        };
        uses(self) == uses(other)
    }
}

impl Taken {
    fn files(&self) -> bool {
        self.everything.or(self.write).or(self.exec).is_some()
    }

    /// What is left of `rights`, with what was `given` where the profile does not deny.
    fn from(&self, rights: Rights, given: Rights) -> Rights {
        if rights.hidden.is_some() {
            return rights;
        }
        if self.everything.is_some() {
            return Rights { denied: self.everything, ..Rights::default() };
        }
        if rights.denied.is_some() {
            return rights;
        }
        let kept =
            |right: Option<TextSpan>, taken: Option<TextSpan>| right.filter(|_| taken.is_none());
        Rights {
            list: rights.list,
            // Reading that came with what was taken stays.
            read: rights.readable().or(given.readable()),
            write: kept(rights.write, self.write).or(given.write),
            exec: kept(rights.exec, self.exec),
            ..rights
        }
    }
}

/// Entries of one domain in the order of applying.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries(Vec<Entry>);

impl Entries {
    /// Sorts `entries`, and lets each glob hold below the more specific patterns that would hide
    /// it: the rule with the longest literal stem labels a file, so `hide ${workspace}/**/.env`
    /// would lose against `write ${workspace}/src` without an entry of its own for
    /// `${workspace}/src/**/.env`.
    pub(crate) fn new(mut entries: Vec<Entry>) -> Self {
        let mut residuals = Vec::new();
        for glob in entries.iter().filter(|entry| entry.pattern.is_glob()) {
            for other in entries.iter().filter(|other| loses_against(glob, other)) {
                for pattern in glob.pattern.residuals_below(&other.pattern) {
                    let layer = glob.layer.max(other.layer);
                    residuals.push(Entry { pattern, layer, ..glob.clone() });
                }
            }
        }
        entries.extend(residuals);
        entries.sort_by_key(Entry::key);
        entries.dedup_by(|a, b| a.pattern == b.pattern && a.list == b.list && a.layer == b.layer);
        Self(entries)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    /// The rights to the files of `pattern`.
    pub(crate) fn rights(&self, pattern: &Pattern) -> Rights {
        let mut rights = Rights::default();
        // Entries are sorted by their stems, and one with the longer stem covers no pattern.
        let candidates = self.0.iter().take_while(|entry| entry.pattern.stem() <= pattern.stem());
        for entry in candidates.filter(|entry| entry.pattern.covers(pattern)) {
            rights.apply(entry.list, entry.place);
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
