//! The authority that one policy gives and another does not.

use crate::policy::{AvKind, Policy, TypeKind};
use crate::{Engine, TypeId};
use rustc_hash::FxHashMap;

/// Permissions of one (source type, target type, class) that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Type of the subject.
    pub source: String,
    /// Type of the object.
    pub target: String,
    /// Class of the object.
    pub class: String,
    /// Granted by the new policy only.
    pub added: Vec<String>,
    /// Granted by the old policy only.
    pub removed: Vec<String>,
}

/// What rules in force grant, by (target, class).
type Authority<'a> = FxHashMap<(&'a str, &'a str), u32>;

/// Every difference between what the rules of two policies grant, for the booleans as they are set: sets of
/// (type, type, class, permission), not texts. Constraints, roles and bounds are not looked at.
#[must_use]
pub fn diff(old: &Engine, new: &Engine) -> Vec<Change> {
    let (old_rules, new_rules) = (by_source(old), by_source(new));
    let mut names: Vec<&str> =
        types(old.policy()).chain(types(new.policy())).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    let mut changes = Vec::new();
    for name in names {
        let before = authority(old, &old_rules, name);
        let after = authority(new, &new_rules, name);
        compare(old.policy(), new.policy(), name, &before, &after, &mut changes);
    }
    changes
}

fn types(policy: &Policy) -> impl Iterator<Item = (&str, TypeId)> {
    let types = policy.types.iter().enumerate();
    types
        .filter(|(_, (_, entry))| entry.kind == TypeKind::Type)
        .map(|(index, (name, _))| (&**name, TypeId::at(index)))
}

/// Numbers of the `allow` rules in force of each type or attribute.
fn by_source(engine: &Engine) -> FxHashMap<TypeId, Vec<usize>> {
    let mut rules: FxHashMap<TypeId, Vec<usize>> = FxHashMap::default();
    for (number, rule) in engine.policy().av_rules.iter().enumerate() {
        let active = rule.branch.is_none_or(|branch| engine.index().holds(branch));
        if rule.kind == AvKind::Allow && active {
            rules.entry(rule.source).or_default().push(number);
        }
    }
    rules
}

fn authority<'a>(
    engine: &'a Engine,
    rules: &FxHashMap<TypeId, Vec<usize>>,
    source: &str,
) -> Authority<'a> {
    let policy = engine.policy();
    let mut authority = Authority::default();
    let entry = policy.types.get(source).filter(|entry| entry.kind == TypeKind::Type);
    let names = entry.into_iter().flat_map(|entry| &entry.attributes);
    for number in names.filter_map(|name| rules.get(name)).flatten() {
        let rule = &policy.av_rules[*number];
        let class = policy.class_name(rule.class);
        for target in policy.types[rule.target.index()].members.iter() {
            let target = policy.type_name(TypeId::at(target));
            *authority.entry((target, class)).or_default() |= rule.perms;
        }
    }
    authority
}

fn compare(
    old: &Policy,
    new: &Policy,
    source: &str,
    before: &Authority<'_>,
    after: &Authority<'_>,
    changes: &mut Vec<Change>,
) {
    let mut keys: Vec<&(&str, &str)> = before.keys().chain(after.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    for key @ (target, class) in keys {
        let names = |policy: &'_ Policy, perms: u32| -> Vec<String> {
            let class = policy.classes.get(*class);
            class.map_or_else(Vec::new, |c| c.names_of(perms).map(str::to_owned).collect())
        };
        let (had, has) = (before.get(key).copied(), after.get(key).copied());
        let same_classes = old.classes.get(*class).map(|c| c.permissions.as_slice())
            == new.classes.get(*class).map(|c| c.permissions.as_slice());
        if had == has && same_classes {
            continue;
        }
        let had = names(old, had.unwrap_or(0));
        let has = names(new, has.unwrap_or(0));
        let only = |a: &[String], b: &[String]| -> Vec<String> {
            a.iter().filter(|name| !b.contains(name)).cloned().collect()
        };
        let (added, removed) = (only(&has, &had), only(&had, &has));
        if !added.is_empty() || !removed.is_empty() {
            changes.push(Change {
                source: source.to_owned(),
                target: (*target).to_owned(),
                class: (*class).to_owned(),
                added,
                removed,
            });
        }
    }
}
