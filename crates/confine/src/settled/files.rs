//! What a policy grants and hides in the file system, as far as the kernel was told; and what the
//! view keeps away.

use super::Settled;
use crate::{
    arrange::PRIVATE,
    launch::View,
    plan::{Plan, READS, Subtree},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// Something that policy gives in vain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfReach {
    /// Where it is.
    pub path: String,
    /// What keeps it away.
    pub why: String,
}

/// What the reachable domains may do below one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Grant {
    path: PathBuf,
    rights: u64,
    /// Some domain must not know that it exists.
    hidden: bool,
}

/// What a policy grants and hides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Grants {
    /// By path; of two with one path, the later.
    places: Vec<Grant>,
    patterns: Vec<Grant>,
    /// Rights to what no rule is about.
    rest: u64,
}

impl Grants {
    pub(super) fn of(plan: &Plan) -> Self {
        let grant = |place: &Subtree| Grant {
            path: place.tree.path.clone(),
            rights: place.any.bits(),
            hidden: place.hidden,
        };
        Self {
            places: plan.places.iter().map(grant).collect(),
            patterns: plan.patterns.iter().map(grant).collect(),
            rest: plan.unruled.bits(),
        }
    }

    /// What `now` grants more, by path.
    fn gained<'a>(&self, now: &'a Self) -> impl Iterator<Item = &'a Path> {
        let places = now.places.iter().filter(|it| it.rights & !self.rights(&it.path) != 0);
        let known = |it: &Grant| {
            let mut patterns = self.patterns.iter();
            self.rights(&it.path) & it.rights == it.rights || patterns.any(|known| known == it)
        };
        let patterns = now.patterns.iter().filter(move |it| it.rights != 0 && !known(it));
        let patterns: Vec<_> = patterns.map(|it| it.path.as_path()).collect();
        places.map(|it| it.path.as_path()).collect::<Vec<_>>().into_iter().chain(patterns)
    }

    /// The literal place that `path` itself lies in.
    fn innermost(&self, path: &Path) -> Option<&Grant> {
        let around = self.places.iter().filter(|grant| path.starts_with(&grant.path));
        around.max_by_key(|grant| grant.path.components().count())
    }

    fn rights(&self, path: &Path) -> u64 {
        self.innermost(path).map_or(self.rest, |grant| grant.rights)
    }

    /// Whether files lose a right to be read.
    pub(super) fn loses_reads(&self, now: &Self) -> bool {
        let reads = READS.bits();
        let loses =
            |grant: &Grant| self.rights(&grant.path) & reads & !now.rights(&grant.path) != 0;
        let patterns =
            |it: &Self| it.patterns.iter().map(|grant| grant.rights & reads).collect::<Vec<_>>();
        self.places.iter().chain(&now.places).any(loses) || patterns(self) != patterns(now)
    }

    /// What is hidden by `now` alone, unless the view leaves it out.
    pub(super) fn newly_hidden<'a>(&self, now: &'a Self, view: &Hidden) -> Option<&'a Path> {
        let was_hidden = |grant: &Grant| {
            self.patterns.iter().any(|it| it.hidden && it.path == grant.path)
                || self.innermost(&grant.path).is_some_and(|it| it.hidden)
        };
        let all = now.places.iter().chain(&now.patterns);
        let mut hidden = all.filter(|grant| grant.hidden && !was_hidden(grant));
        hidden.find(|grant| !view.leaves_out(&grant.path)).map(|grant| grant.path.as_path())
    }
}

/// What the view of a run keeps from it, and from its monitor.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Hidden {
    absent: Vec<PathBuf>,
    keep: Vec<PathBuf>,
    covered: Vec<PathBuf>,
    /// It has temporary directories of its own.
    private: bool,
}

impl Hidden {
    pub(super) fn by(view: &View) -> Self {
        Self {
            absent: view.absent.clone(),
            keep: view.keep.clone(),
            covered: [&view.denied[..], &view.hollow].concat(),
            private: view.private_tmp,
        }
    }

    fn leaves_out(&self, path: &Path) -> bool {
        let is_below = |tops: &[PathBuf]| tops.iter().any(|top| path.starts_with(top));
        is_below(&self.absent) && !is_below(&self.keep)
    }

    /// Why nothing at `path`, outside, can be reached in the run; `None` if it can.
    fn keeps_away(&self, path: &Path) -> Option<&'static str> {
        let is_below = |tops: &[PathBuf]| tops.iter().any(|top| path.starts_with(top));
        if self.leaves_out(path) {
            return Some(
                "it is not in the run's view, which was made when it started (`dewar run --ask` leaves less out)",
            );
        }
        if is_below(&self.covered) {
            return Some("it was covered when the run started");
        }
        let private = PRIVATE.iter().any(|top| path.starts_with(top));
        if self.private && private && !is_below(&self.keep) {
            return Some("the run has a temporary directory of its own there");
        }
        None
    }
}

impl Settled {
    /// What `now` grants more than at the start, while the view of the run keeps it away: of that,
    /// what it grants more than `before`, and what is `given` anew.
    #[must_use]
    pub fn out_of_reach(
        &self,
        before: &Plan,
        now: &Plan,
        given: impl Fn(&Path) -> bool,
    ) -> Vec<OutOfReach> {
        const MOST: usize = 16;
        let (before, now) = (Grants::of(before), Grants::of(now));
        let kept = |path: &Path| {
            let why = self.view.keeps_away(path)?.to_owned();
            Some(OutOfReach { path: path.to_string_lossy().into_owned(), why })
        };
        let new: HashSet<&Path> = before.gained(&now).collect();
        let gained = self.grants.gained(&now).filter(|path| new.contains(path) || given(path));
        gained.filter_map(kept).take(MOST).collect()
    }
}
