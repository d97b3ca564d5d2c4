//! What one policy says and another does not: authority, and everything that bears on it.

use super::facts::{Fact, facts};
use crate::hash::HashMap;
use crate::policy::{AvKind, Branch, Policy, TypeKind};
use crate::{Engine, TypeId};
use std::collections::BTreeSet;

/// The differences between two policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// What rules grant, record and keep quiet about.
    pub authority: Vec<RuleChange>,
    /// Everything else, by section and by what it is about.
    pub facts: Vec<FactChange>,
}

/// Permissions of one (source type, target type, class) that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleChange {
    /// What the rules do.
    pub kind: AvKind,
    /// Type of the subject.
    pub source: String,
    /// Type of the object.
    pub target: String,
    /// Class of the object.
    pub class: String,
    /// The condition, not met in either policy, that the rules wait for; `None` for what holds now.
    pub condition: Option<String>,
    /// Named by the new policy only.
    pub added: Vec<String>,
    /// Named by the old policy only.
    pub removed: Vec<String>,
}

/// Something that differs in one section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactChange {
    /// The section: a keyword of CIL, where one fits.
    pub section: &'static str,
    /// What it is about.
    pub about: String,
    /// How it differs.
    pub how: How,
}

/// How something differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// Only the new policy has it; its value there.
    Added(String),
    /// Only the old policy has it; its value there.
    Removed(String),
    /// Both have it, with these values.
    Changed {
        /// The value in the old policy.
        old: String,
        /// The value in the new policy.
        new: String,
    },
    /// Both have it, as a set of which these members differ.
    Members {
        /// In the new policy only.
        added: Vec<String>,
        /// In the old policy only.
        removed: Vec<String>,
    },
}

/// What rules say, by (target, class, condition that they wait for).
type Authority<'a> = HashMap<(&'a str, &'a str, Option<String>), u32>;

/// Every difference between two policies, for the booleans as they are set.
///
/// Authority is compared as sets of (type, type, class, permission), not as texts, and less what
/// `typebounds` takes away. Constraints and role changes depend on whole contexts: they are
/// compared as statements, as everything else.
#[must_use]
pub fn diff(old: &Engine, new: &Engine) -> Differences {
    let mut names: Vec<&str> = types(old.policy()).chain(types(new.policy())).collect();
    names.sort_unstable();
    names.dedup();
    let mut authority = Vec::new();
    for kind in [AvKind::Allow, AvKind::AuditAllow, AvKind::DontAudit] {
        let (before, after) = (Rules::new(old, kind), Rules::new(new, kind));
        for name in &names {
            compare(&before, &after, name, &mut authority);
        }
    }
    Differences { authority, facts: compare_facts(old.policy(), new.policy()) }
}

fn types(policy: &Policy) -> impl Iterator<Item = &str> {
    let types = policy.types.iter().filter(|(_, entry)| entry.kind == TypeKind::Type);
    types.map(|(name, _)| &**name)
}

/// The rules of one kind, by the type or attribute that they name as their source.
struct Rules<'a> {
    engine: &'a Engine,
    kind: AvKind,
    by_source: HashMap<TypeId, Vec<usize>>,
}

impl<'a> Rules<'a> {
    fn new(engine: &'a Engine, kind: AvKind) -> Self {
        let mut by_source: HashMap<TypeId, Vec<usize>> = HashMap::default();
        for (number, rule) in engine.policy().av_rules.iter().enumerate() {
            if rule.kind == kind {
                by_source.entry(rule.source).or_default().push(number);
            }
        }
        Self { engine, kind, by_source }
    }

    /// What the rules say about a type; nothing for one that the policy lacks.
    fn of(&self, source: &str) -> Authority<'a> {
        let policy = self.engine.policy();
        let mut authority = Authority::default();
        let Some(entry) = policy.types.get(source).filter(|e| e.kind == TypeKind::Type) else {
            return authority;
        };
        let numbers = entry.attributes.iter().filter_map(|name| self.by_source.get(name)).flatten();
        for rule in numbers.map(|number| &policy.av_rules[*number]) {
            let class = policy.class_name(rule.class);
            let condition = self.awaited(rule.branch);
            for target in policy.types[rule.target.index()].members.iter() {
                let target = policy.type_name(TypeId::at(target));
                *authority.entry((target, class, condition.clone())).or_default() |= rule.perms;
            }
        }
        if let Some(parent) = entry.bounds.filter(|_| self.kind == AvKind::Allow) {
            self.bound(parent, &mut authority);
        }
        authority
    }

    /// Takes away what the type that bounds the source may not do. Chains of bounds have been
    /// checked to be short.
    fn bound(&self, parent: TypeId, authority: &mut Authority<'a>) {
        let policy = self.engine.policy();
        let granted = self.of(policy.type_name(parent));
        for ((target, class, condition), perms) in authority.iter_mut() {
            let bound = policy.types.get(*target).and_then(|entry| entry.bounds);
            let target = bound.map_or(*target, |bound| policy.type_name(bound));
            let now = granted.get(&(target, *class, None)).copied().unwrap_or(0);
            let awaited = condition.as_ref().map_or(0, |_| {
                granted.get(&(target, *class, condition.clone())).copied().unwrap_or(0)
            });
            *perms &= now | awaited;
        }
        authority.retain(|_, perms| *perms != 0);
    }

    fn awaited(&self, branch: Option<Branch>) -> Option<String> {
        let branch = branch.filter(|branch| !self.engine.index().holds(*branch))?;
        Some(self.engine.policy().format_branch(branch))
    }
}

fn compare(old: &Rules<'_>, new: &Rules<'_>, source: &str, changes: &mut Vec<RuleChange>) {
    let (before, after) = (old.of(source), new.of(source));
    let mut keys: Vec<_> = before.keys().chain(after.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let (target, class, condition) = key;
        let had = names(old.engine.policy(), class, before.get(key).copied());
        let has = names(new.engine.policy(), class, after.get(key).copied());
        if had != has {
            changes.push(RuleChange {
                kind: old.kind,
                source: source.to_owned(),
                target: (*target).to_owned(),
                class: (*class).to_owned(),
                condition: condition.clone(),
                added: only(&has, &had),
                removed: only(&had, &has),
            });
        }
    }
}

fn names<'a>(policy: &'a Policy, class: &str, perms: Option<u32>) -> BTreeSet<&'a str> {
    let class = policy.classes.get(class).zip(perms);
    class.into_iter().flat_map(|(class, perms)| class.names_of(perms)).collect()
}

fn only<T: Ord + ToString>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> Vec<String> {
    a.difference(b).map(ToString::to_string).collect()
}

fn compare_facts(old: &Policy, new: &Policy) -> Vec<FactChange> {
    let (mut before, after) = (facts(old), facts(new));
    let mut changes = Vec::new();
    for ((section, about), new) in after {
        let old = before.remove(&(section, about.clone()));
        if let Some(how) = how(old, new) {
            changes.push(FactChange { section, about, how });
        }
    }
    changes.extend(before.into_iter().map(|((section, about), old)| FactChange {
        section,
        about,
        how: How::Removed(value(old)),
    }));
    changes.sort_by(|a, b| (a.section, &a.about).cmp(&(b.section, &b.about)));
    changes
}

fn how(old: Option<Fact>, new: Fact) -> Option<How> {
    match (old, new) {
        (None, new) => Some(How::Added(value(new))),
        (Some(old), new) if old == new => None,
        (Some(Fact::Set(old)), Fact::Set(new)) => {
            Some(How::Members { added: only(&new, &old), removed: only(&old, &new) })
        }
        (Some(old), new) => Some(How::Changed { old: value(old), new: value(new) }),
    }
}

fn value(fact: Fact) -> String {
    match fact {
        Fact::Text(text) => text,
        Fact::Set(names) => names.into_iter().collect::<Vec<_>>().join(" "),
    }
}
