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

/// Something that policy grants and that the run cannot reach.
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
    /// The rule, by its regular expression and the files that it is about.
    #[serde(default)]
    rule: String,
    rights: u64,
    /// Some domain must not know that it exists.
    hidden: bool,
}

impl Grant {
    /// Whether all of its files are those of the pattern `whole`, `DIR/(.*/)?NAME`: they have such
    /// a name, deeper in that directory. Says no when in doubt.
    fn is_part_of(&self, whole: &Self) -> bool {
        let rules = (self.rule.split_once(' '), whole.rule.split_once(' '));
        let (Some((kind, part)), Some((of_kind, whole))) = rules else { return false };
        let Some((directory, name)) = whole.split_once("/(.*/)?") else { return false };
        let rest = part.strip_prefix(directory).and_then(|rest| rest.strip_suffix(name));
        let is_deeper = |rest: &str| {
            rest.starts_with('/') && (rest.ends_with('/') || rest.ends_with("/(.*/)?"))
        };
        // What stands in between must not be of several expressions.
        (of_kind == kind || of_kind == "Any")
            && rest.is_some_and(|rest| is_deeper(rest) && !rest.contains('|'))
    }
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
            rule: format!("{:?} {}", place.kind, place.regex),
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

    /// Whether files lose a right to be read, or may: which files a pattern is about is not known.
    pub(super) fn loses_reads(&self, now: &Self) -> bool {
        let lost = |was: u64, is: u64| was & !is & READS.bits() != 0;
        if lost(self.rest, now.rest) || self.reordered(now) {
            return true;
        }
        // Files that another rule is about by now, and files whose rule is no more.
        let new = now.rules().any(|rule| match self.of_rule(rule) {
            Some(was) => lost(was.rights, rule.rights),
            None => self.near(&rule.path).any(|was| lost(was, rule.rights)),
        });
        let mut gone = self.rules().filter(|rule| now.of_rule(rule).is_none());
        new || gone.any(|rule| now.near(&rule.path).any(|is| lost(rule.rights, is)))
    }

    /// Whether of two patterns that both have, another one has the last word.
    fn reordered(&self, now: &Self) -> bool {
        let kept = |one: &Self, other: &Self| {
            let rules = one.patterns.iter().filter(|rule| other.of_rule(rule).is_some());
            rules.map(|rule| rule.rule.clone()).collect::<Vec<_>>()
        };
        kept(self, now) != kept(now, self)
    }

    fn rules(&self) -> impl Iterator<Item = &Grant> {
        self.places.iter().chain(&self.patterns)
    }

    /// The same rule, here.
    fn of_rule(&self, rule: &Grant) -> Option<&Grant> {
        self.rules().filter(|it| (&it.rule, &it.path) == (&rule.rule, &rule.path)).last()
    }

    /// Rights to what may be a file of a rule whose files lie at or below `path`.
    fn near(&self, path: &Path) -> impl Iterator<Item = u64> {
        let below = self.rules().filter(move |it| it.path.starts_with(path));
        let around = self.patterns.iter().filter(move |it| path.starts_with(&it.path));
        below.chain(around).map(|it| it.rights).chain([self.rights(path)])
    }

    /// What is hidden by `now` alone, unless the view leaves it out. Of what is taken, those files
    /// that were hidden get a rule of their own.
    pub(super) fn newly_hidden<'a>(&self, now: &'a Self, view: &Hidden) -> Option<&'a Path> {
        let was_hidden = |grant: &Grant| match self.of_rule(grant) {
            Some(was) => was.hidden,
            None => {
                let mut patterns = self.patterns.iter().filter(|it| it.hidden);
                patterns.any(|it| it.path == grant.path || grant.is_part_of(it))
                    || self.innermost(&grant.path).is_some_and(|it| it.hidden)
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use landlock::AccessFs;

    const ALL: u64 = READS.bits_c() | AccessFs::WriteFile as u64;

    fn grants(places: &[(&str, u64)], patterns: &[(&str, &str, u64)]) -> Grants {
        let grant = |path: &str, rule: &str, rights| Grant {
            path: path.into(),
            rule: rule.into(),
            rights,
            hidden: false,
        };
        let places = places.iter().map(|(path, rights)| grant(path, path, *rights)).collect();
        let patterns = patterns.iter().map(|(path, rule, rights)| grant(path, rule, *rights));
        Grants { places, patterns: patterns.collect(), rest: 0 }
    }

    #[test]
    fn reads_are_not_lost_where_writing_is_taken_of_one_file_or_by_a_pattern() {
        let (work, reads) = (("/w", ALL), READS.bits());
        let before = grants(&[work], &[("/w", "/w/.*pem", 0)]);
        let pattern = |rights| ("/w/a", "/w/a/g.*", rights);
        let pem = ("/w", "/w/.*pem", 0);
        let now = |rights| grants(&[work], &[pem, pattern(rights)]);
        assert!(!grants(&[work], &[]).loses_reads(&grants(&[work], &[pattern(reads)])));
        assert!(!before.loses_reads(&now(reads)));
        assert!(before.loses_reads(&now(0)));
        let file = |rights| grants(&[work, ("/w/a/f", rights)], &[pem]);
        assert!(!before.loses_reads(&file(reads)));
        assert!(before.loses_reads(&file(0)));
    }

    #[test]
    fn what_is_taken_in_the_middle_of_what_a_pattern_hides_is_not_newly_hidden() {
        let hidden = |rules: &[(&str, &str)]| {
            let rules = rules.iter().map(|(path, regex)| Grant {
                path: (*path).into(),
                rule: format!("Any {regex}"),
                rights: 0,
                hidden: true,
            });
            Grants { patterns: rules.collect(), ..grants(&[("/w", ALL)], &[]) }
        };
        let env = ("/w", r"/w/(.*/)?\.env");
        let start = hidden(&[env]);
        let newly = |rule: (&str, &str)| {
            start.newly_hidden(&hidden(&[env, rule]), &Hidden::default()).is_some()
        };
        for part in [r"/w/ok/(.*/)?\.env", r"/w/ok/\.env", r"/w/[^/]*/b/\.env"] {
            assert!(!newly(("/w/ok", part)), "{part}");
        }
        for other in [
            r"/w/ok/(.*/)?key",
            r"/w/ok/(.*/)?x\.env",
            r"/w/ok/(.*/)?\.env(/.*)?",
            r"/w2/ok/\.env",
            r"/w/ok|/b/\.env",
            r"/v/\.env",
        ] {
            assert!(newly(("/w/ok", other)), "{other}");
        }
        // A rule that was there, and hid nothing.
        let before = grants(&[("/w", ALL)], &[("/w", r"Any /w/(.*/)?\.env", ALL)]);
        assert!(before.newly_hidden(&start, &Hidden::default()).is_some());
    }

    #[test]
    fn reads_are_lost_by_another_pattern_with_the_same_rights() {
        let with = |patterns: &[(&str, &str, u64)]| grants(&[("/w", ALL)], patterns);
        let (pem, key) = (("/w", "/w/.*pem", 0), ("/w", "/w/.*key", 0));
        let read = ("/w", "/w/.*", READS.bits());
        assert!(with(&[pem]).loses_reads(&with(&[key])));
        assert!(with(&[pem]).loses_reads(&with(&[pem, key])));
        assert!(with(&[pem, read]).loses_reads(&with(&[read, pem])));
        assert!(with(&[]).loses_reads(&with(&[pem])));
        assert!(!with(&[pem]).loses_reads(&with(&[])), "given, not taken");
        assert!(!with(&[pem, key]).loses_reads(&with(&[pem, key])));
        let outer = grants(&[("/w", 0), ("/w/a", ALL)], &[]);
        assert!(outer.loses_reads(&grants(&[("/w", 0)], &[])), "a grant that is no more");
    }
}
