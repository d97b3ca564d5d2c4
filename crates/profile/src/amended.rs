//! What amendments have made of the rights of a profile.

use crate::amendment::{AmendmentKind, Clause, ClauseObject, PathUse};
use crate::rights::Rights;
use crate::source::TextSpan;

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
    pub(crate) fn of(&self, rights: &Rights) -> Rights {
        self.taken.from(rights, &self.given)
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
    fn from(&self, rights: &Rights, given: &Rights) -> Rights {
        if rights.hidden.is_some() {
            return *rights;
        }
        if self.everything.is_some() {
            return Rights { denied: self.everything, ..Rights::default() };
        }
        if rights.denied.is_some() {
            return *rights;
        }
        let kept =
            |right: Option<TextSpan>, taken: Option<TextSpan>| right.filter(|_| taken.is_none());
        Rights {
            list: rights.list,
            // Reading that came with what was taken stays.
            read: rights.readable().or(given.readable()),
            write: kept(rights.write, self.write).or(given.write),
            exec: kept(rights.exec, self.exec),
            ..*rights
        }
    }
}
