//! Many denials as few: those of a kind whose objects lie together are told as one, by a pattern.

use crate::run::Denial;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

/// Objects of one kind that are told one by one.
const FEW: usize = 3;

/// Patterns of one kind.
const MOST_PATTERNS: usize = 6;

/// Denials of one kind, about objects that one pattern covers.
pub(crate) struct Group<'a> {
    /// An object, or a pattern for several: `/d/*` for entries of a directory, `/d/**` for all
    /// below, `*:443`.
    pub(crate) pattern: String,
    /// With their numbers, from 1.
    pub(crate) members: Vec<(usize, &'a Denial)>,
}

impl Group<'_> {
    /// How often it was denied.
    pub(crate) fn times(&self) -> u64 {
        self.members.iter().map(|(_, denial)| denial.record.count).sum()
    }

    /// The numbers of its members, as `dewar allow` takes them: `1-3 7`.
    pub(crate) fn numbers(&self) -> String {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for (number, _) in &self.members {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == *number => *last = *number,
                _ => ranges.push((*number, *number)),
            }
        }
        let range = |(low, high): &(usize, usize)| match low == high {
            true => low.to_string(),
            false => format!("{low}-{high}"),
        };
        ranges.iter().map(range).collect::<Vec<_>>().join(" ")
    }
}

/// What makes denials one kind: all but the object, and how often.
type Kind<'a> = (&'a str, &'a str, &'a str, &'a str, Vec<&'a str>, &'a [String], bool);

/// The groups, what was denied most often first.
pub(crate) fn groups(denials: &[Denial]) -> Vec<Group<'_>> {
    let mut kinds: HashMap<Kind<'_>, Vec<(usize, &Denial)>> = HashMap::new();
    for (index, denial) in denials.iter().enumerate() {
        let record = &denial.record;
        let missing: Vec<&str> = record.missing.iter().map(String::as_str).collect();
        let kind = (
            record.comm.as_str(),
            record.scontext.as_str(),
            record.tcontext.as_str(),
            record.tclass.as_str(),
            missing,
            denial.profile_rules.as_slice(),
            record.natively,
        );
        kinds.entry(kind).or_default().push((denial.number(index), denial));
    }
    let mut groups: Vec<Group<'_>> = kinds.into_values().flat_map(split).collect();
    groups.sort_by_key(|group| (Reverse(group.times()), group.members[0].0));
    groups
}

/// One kind in groups of objects that lie together, as deep as there are few of them.
fn split<'a>(members: Vec<(usize, &'a Denial)>) -> Vec<Group<'a>> {
    if members.len() <= FEW {
        return members.into_iter().map(alone).collect();
    }
    let deepest = members.iter().map(|(_, it)| depth(&it.record.object)).max().unwrap_or(0);
    let mut found = by_place(&members, deepest);
    for depth in (0..deepest).rev() {
        if found.len() <= MOST_PATTERNS {
            break;
        }
        found = by_place(&members, depth);
    }
    found.into_iter().flat_map(|(place, members)| told(&place, members)).collect()
}

/// A denial for itself, with its number.
pub(crate) fn alone<'a>(member: (usize, &'a Denial)) -> Group<'a> {
    Group { pattern: member.1.record.object.clone(), members: vec![member] }
}

/// How many directories a path lies in.
fn depth(object: &str) -> usize {
    if object.starts_with('/') { object.matches('/').count() - 1 } else { 0 }
}

/// By the first `depth` directories of their paths; of what is no path, by the port.
fn by_place<'a>(
    members: &[(usize, &'a Denial)],
    depth: usize,
) -> BTreeMap<String, Vec<(usize, &'a Denial)>> {
    let mut places: BTreeMap<String, Vec<(usize, &Denial)>> = BTreeMap::new();
    for member in members {
        let object = &member.1.record.object;
        let place = if object.starts_with('/') {
            let parent = object.rsplit_once('/').map_or("", |(parent, _)| parent);
            parent.split('/').take(depth + 1).collect::<Vec<_>>().join("/")
        } else {
            object.rsplit_once(':').map_or(String::new(), |(_, port)| format!(":{port}"))
        };
        places.entry(place).or_default().push(*member);
    }
    places
}

fn told<'a>(place: &str, members: Vec<(usize, &'a Denial)>) -> Vec<Group<'a>> {
    if members.len() == 1 {
        return members.into_iter().map(alone).collect();
    }
    let is_path = members.iter().all(|(_, it)| it.record.object.starts_with('/'));
    let is_flat = || {
        let below =
            |it: &Denial| it.record.object.rsplit_once('/').is_some_and(|(up, _)| up == place);
        members.iter().all(|(_, it)| below(it))
    };
    let pattern = match (is_path, is_path && is_flat()) {
        (true, true) => format!("{place}/*"),
        (true, false) => format!("{place}/**"),
        _ => format!("*{place}"),
    };
    vec![Group { pattern, members }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use monitor::Record;

    fn denials(objects: impl IntoIterator<Item = String>) -> Vec<Denial> {
        let denial = |object| {
            let missing = vec!["read".to_owned()];
            let record = Record { object, missing, count: 2, ..Record::default() };
            Denial { record, profile_rules: Vec::new() }
        };
        objects.into_iter().map(denial).collect()
    }

    fn patterns(denials: &[Denial]) -> Vec<(String, usize)> {
        groups(denials).iter().map(|it| (it.pattern.clone(), it.members.len())).collect()
    }

    #[test]
    fn few_objects_are_told_one_by_one_and_many_by_what_covers_them() {
        let few = denials(["/a/x", "/a/y", "/b"].map(String::from));
        assert_eq!(patterns(&few).len(), 3);
        let many = denials((0..3000).map(|n| format!("/home/me/src/file-{n}")));
        assert_eq!(patterns(&many), [("/home/me/src/*".to_owned(), 3000)]);
        let deep =
            denials((0..3000).map(|n| format!("/home/me/node_modules/p{}/lib/{n}", n % 100)));
        assert_eq!(patterns(&deep), [("/home/me/node_modules/**".to_owned(), 3000)]);
        let hosts = denials((0..9).map(|n| format!("192.0.2.{n}:443")));
        assert_eq!(patterns(&hosts), [("*:443".to_owned(), 9)]);
    }

    #[test]
    fn every_denial_is_in_one_group_with_its_number() {
        let mut objects: Vec<String> = (0..40).map(|n| format!("/d{}/x{n}", n % 4)).collect();
        objects.push("/alone/y".into());
        let all = denials(objects);
        let mut numbers: Vec<usize> =
            groups(&all).iter().flat_map(|it| it.members.iter().map(|(n, _)| *n)).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=41).collect::<Vec<_>>());
        assert_eq!(groups(&all).iter().map(Group::times).sum::<u64>(), 82);
    }

    #[test]
    fn a_denial_is_told_by_its_own_number_where_others_before_it_are_gone() {
        let mut all = denials((0..2).map(|n| format!("/{n}/x")));
        all[1].record.number = 2231;
        let found: Vec<String> = groups(&all).iter().map(Group::numbers).collect();
        assert_eq!(found, ["1", "2231"]);
    }

    #[test]
    fn numbers_are_told_as_allow_takes_them() {
        let all = denials((0..5).map(|n| format!("/d/{n}")));
        let members = |picked: &[usize]| picked.iter().map(|n| (*n, &all[n - 1])).collect();
        let group = Group { pattern: String::new(), members: members(&[1, 2, 3, 5]) };
        assert_eq!(group.numbers(), "1-3 5");
    }
}
