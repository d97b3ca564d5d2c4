//! What a policy grants and hides in the file system, as far as the kernel was told; and what the view keeps away.

use crate::{
    launch::View,
    plan::{Place, Plan, READS},
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

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
        let grant = |place: &Place| Grant {
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
pub(crate) struct Hidden {
    absent: Vec<PathBuf>,
    keep: Vec<PathBuf>,
}

impl Hidden {
    pub(super) fn by(view: &View) -> Self {
        Self { absent: view.absent.clone(), keep: view.keep.clone() }
    }

    fn leaves_out(&self, path: &Path) -> bool {
        let is_below = |tops: &[PathBuf]| tops.iter().any(|top| path.starts_with(top));
        is_below(&self.absent) && !is_below(&self.keep)
    }
}
