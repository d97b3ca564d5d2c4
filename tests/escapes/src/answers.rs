//! What a list of calls was answered, in each mode, each time that it was made.

use libtest_mimic::Failed;
use std::collections::{BTreeMap, BTreeSet};

/// Differences that are told.
const MOST_TOLD: usize = 8;

/// What an open says of what is not to be opened so.
const REFUSALS: [&str; 8] = [
    "Permission denied",
    "No such process",
    "Not a directory",
    "No such file or directory",
    "No such device or address",
    "Is a directory",
    "File exists",
    "Too many levels of symbolic links",
];

/// What is said of an open without `O_DIRECTORY` that has opened a directory.
const LISTED: &str = "done, a directory";

/// A call's place in the list, and its number.
type Place = (usize, String);
/// All answers to a call, in mode `all` and in mode `fast`.
type Both<'a> = [BTreeSet<&'a str>; 2];

/// Of each time that the list was made in mode `all`, and in mode `fast`, every call's answer.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    made: [Vec<BTreeMap<Place, String>>; 2],
}

impl Answers {
    /// Adds what one process told: lines of a call's place, its number, and its answer.
    pub(crate) fn add(&mut self, fast: bool, told: &str) {
        let answer = |line: &str| {
            let (place, rest) = line.split_once(' ')?;
            let (number, answer) = rest.split_once(' ')?;
            Some(((place.parse().ok()?, number.to_owned()), answer.to_owned()))
        };
        self.made[usize::from(fast)].push(told.lines().filter_map(answer).collect());
    }

    /// The first calls with more than one answer.
    pub(crate) fn different(&self) -> Vec<String> {
        self.told(|[all, fast]| all.union(fast).count() > 1)
    }

    /// The first calls of which no answer in the one mode was ever one in the other. Of several
    /// reasons to refuse an open, the kernel and the monitor may each find another first; and what
    /// may be listed only is opened in mode `fast` with `O_DIRECTORY` alone.
    pub(crate) fn between_modes(&self) -> Vec<String> {
        self.told(|[all, fast]| {
            let are_refused = |mode: &BTreeSet<&str>| mode.iter().all(|it| REFUSALS.contains(it));
            let is_listed = all.iter().all(|it| *it == LISTED || REFUSALS.contains(it));
            all.is_disjoint(fast) && !(is_listed && are_refused(fast))
        })
    }

    fn told(&self, is: impl Fn(&Both<'_>) -> bool) -> Vec<String> {
        let places: BTreeSet<&Place> =
            self.made.iter().flatten().flat_map(BTreeMap::keys).collect();
        let mut told = Vec::new();
        for place in places {
            let both: Both<'_> = self.made.each_ref().map(|made| {
                made.iter().map(|it| it.get(place).map_or("nothing", String::as_str)).collect()
            });
            if is(&both) && told.len() < MOST_TOLD {
                let ((place, number), [all, fast]) = (place, &both);
                told.push(format!("{place}, call {number}: all {all:?}, fast {fast:?}"));
            }
        }
        told
    }
}

/// What one mode answers each time, and the other never, is a difference between modes; what an
/// answer of either has been is none.
pub(crate) fn modes_are_told_from_times() -> Result<(), Failed> {
    let differ = |all: [&str; 2], fast: [&str; 2]| {
        let mut answers = Answers::default();
        for (all, fast) in all.into_iter().zip(fast) {
            answers.add(false, &format!("1 2 done\n{all}"));
            answers.add(true, &format!("1 2 done\n{fast}"));
        }
        (answers.different().len(), answers.between_modes().len())
    };
    let (no, yes, neither) = ("3 4 denied", "3 4 done", "");
    for (all, fast, wanted) in [
        ([no, no], [no, no], (0, 0)),
        ([no, no], [yes, yes], (1, 1)),
        ([no, no], [neither, neither], (1, 1)),
        ([no, yes], [yes, yes], (1, 0)),
        ([no, yes], [no, no], (1, 0)),
        ([yes, neither], [neither, neither], (1, 0)),
        (["3 4 No such process"; 2], ["3 4 Permission denied"; 2], (1, 0)),
        (["3 4 No such process"; 2], [yes; 2], (1, 1)),
        (["3 4 done, a directory"; 2], ["3 4 Permission denied"; 2], (1, 0)),
        (["3 4 Permission denied"; 2], ["3 4 done, a directory"; 2], (1, 1)),
    ] {
        let found = differ(all, fast);
        if found != wanted {
            return Err(format!("{all:?} and {fast:?}: {found:?}").into());
        }
    }
    Ok(())
}
