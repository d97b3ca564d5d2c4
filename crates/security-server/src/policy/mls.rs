//! Multi-level security: levels, ranges, dominance.

use crate::{BitSet, SensId};

/// A sensitivity with a set of categories.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    /// The sensitivity.
    pub sens: SensId,
    /// The categories, by their numbers.
    pub cats: BitSet,
}

impl Level {
    /// Whether the level is at least as high as `other` in both senses.
    #[must_use]
    pub fn dominates(&self, other: &Self) -> bool {
        self.sens >= other.sens && self.cats.contains_all(&other.cats)
    }
}

/// A pair of levels: what a subject works at, and how high it is cleared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The current level.
    pub low: Level,
    /// The clearance.
    pub high: Level,
}

impl Range {
    /// The range that holds one level.
    #[must_use]
    pub fn single(level: Level) -> Self {
        Self { low: level.clone(), high: level }
    }

    /// Whether `other` lies within the range.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        other.low.dominates(&self.low) && self.high.dominates(&other.high)
    }

    /// The greatest lower and least upper bound of the two ranges, as `defaultrange … glblub` asks
    /// for; `None` when they do not overlap.
    #[must_use]
    pub fn glblub(&self, other: &Self) -> Option<Self> {
        if self.high.sens < other.low.sens || other.high.sens < self.low.sens {
            return None;
        }
        let meet = |a: &Level, b: &Level, sens| {
            let mut cats = a.cats.clone();
            cats.intersect_with(&b.cats);
            Level { sens, cats }
        };
        let low_sens = self.low.sens.max(other.low.sens);
        let high_sens = self.high.sens.min(other.high.sens);
        Some(Self {
            low: meet(&self.low, &other.low, low_sens),
            high: meet(&self.high, &other.high, high_sens),
        })
    }
}
