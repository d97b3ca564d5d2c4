//! The same files at two places, by mounts: what is taken at the one is taken at the other.

use crate::pattern::Pattern;
use crate::rights::{List, ListedPattern, Standing};
use crate::source::TextSpan;
use std::path::PathBuf;

/// Pairs of places at which the same files lie.
#[derive(Debug)]
pub(crate) struct Mounted(Vec<(Pattern, Pattern)>);

impl Mounted {
    pub(crate) fn new(pairs: &[(PathBuf, PathBuf)]) -> Self {
        let paths = |(from, to): &(PathBuf, PathBuf)| {
            Some((Pattern::of_path(from)?, Pattern::of_path(to)?))
        };
        Self(pairs.iter().filter_map(paths).collect())
    }

    /// Where else the files of `pattern` lie, for something that is taken: what cannot be said more
    /// exactly is all of the other place.
    pub(crate) fn elsewhere(&self, pattern: &Pattern) -> Vec<Pattern> {
        let all = self.0.iter().flat_map(|(from, to)| {
            let moved = pattern.moved(from, to);
            moved.unwrap_or_else(|_| vec![to.clone().with_everything_below()])
        });
        all.collect()
    }

    /// The same for something that is given: nothing of what cannot be said exactly.
    pub(crate) fn certainly_elsewhere(&self, pattern: &Pattern) -> Vec<Pattern> {
        let all = self.0.iter().flat_map(|(from, to)| pattern.moved(from, to).unwrap_or_default());
        all.collect()
    }

    /// Adds what `entries` take from the files of other places, and what they would give of
    /// `confidential` ones. Who names such a place to grant all of it means it: what is denied
    /// around the other one is none of it. A part that is granted is as it would be elsewhere.
    pub(crate) fn take(
        &self,
        entries: &mut Vec<ListedPattern>,
        confidential: &[(Pattern, TextSpan)],
    ) {
        let mut taken = Vec::new();
        for (from, to) in &self.0 {
            let grants =
                |entry: &ListedPattern| !entry.list.restricts() && entry.list > List::Names;
            let is_it = |pattern: &Pattern| pattern.clone().with_nothing_below() == *to;
            let is_meant = entries.iter().any(|it| grants(it) && is_it(&it.pattern));
            let around =
                |entry: &ListedPattern| entry.pattern.covers(from) && entry.layer != usize::MAX;
            for entry in entries.iter().filter(|entry| entry.list.restricts()) {
                if is_meant && around(entry) {
                    continue;
                }
                let moved = entry.pattern.moved(from, to);
                let moved = moved.unwrap_or_else(|_| vec![to.clone().with_everything_below()]);
                taken.extend(moved.into_iter().map(|pattern| ListedPattern {
                    pattern,
                    standing: Standing::Elsewhere,
                    rank: None,
                    beside: false,
                    ..entry.clone()
                }));
            }
        }
        for (pattern, place) in confidential {
            taken.extend(self.elsewhere(pattern).into_iter().map(|pattern| ListedPattern {
                pattern,
                list: List::Deny,
                layer: 0,
                place: *place,
                standing: Standing::Elsewhere,
                rank: None,
                beside: false,
                alone: false,
            }));
        }
        entries.extend(taken);
    }
}
