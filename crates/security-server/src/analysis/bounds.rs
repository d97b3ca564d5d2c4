//! Types, roles and users that go beyond what bounds them.

use crate::hash::HashMap;
use crate::policy::{AvKind, AvRule, Branch, Meaning, Policy};
use crate::{BitSet, ClassId, RoleId, TypeId, UserId};

/// Something bounded that has more than what bounds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excess {
    /// A rule grants a type what the type that bounds it may not do. No decision follows such a
    /// rule; `secilc` refuses the policy.
    Rule {
        /// The rule, as a number of [`Policy::av_rules`].
        rule: usize,
        /// The bounded type.
        child: TypeId,
        /// The type that bounds it.
        parent: TypeId,
        /// A type of the object for which it does.
        target: TypeId,
        /// The permissions that the parent lacks there.
        perms: u32,
    },
    /// A role may have types that the role which bounds it may not have. The kernel refuses the
    /// policy.
    Role {
        /// The bounded role.
        child: RoleId,
        /// The role that bounds it.
        parent: RoleId,
        /// Those types.
        types: BitSet,
    },
    /// A user may have roles that the user who bounds them may not have. The kernel refuses the
    /// policy.
    User {
        /// The bounded user.
        child: UserId,
        /// The user that bounds them.
        parent: UserId,
        /// Those roles.
        roles: BitSet,
    },
}

impl Policy {
    /// Everything that goes beyond its bounds: users, then roles, then each rule with one example
    /// of types.
    ///
    /// A rule in a branch counts as granted, and the parent must be granted the same outside of
    /// conditions, in that branch, or in both branches of some condition; so libsepol reads
    /// `typebounds` when it compiles a policy.
    #[must_use]
    pub fn excesses(&self) -> Vec<Excess> {
        let mut excesses = Vec::new();
        for (index, user) in self.users.values().enumerate() {
            let Some(parent) = user.bounds else { continue };
            let roles =
                beyond(&user.roles, self.users.get_index(parent.index()).map(|u| &u.1.roles));
            if !roles.is_empty() {
                excesses.push(Excess::User { child: UserId::at(index), parent, roles });
            }
        }
        for (index, role) in self.roles.values().enumerate() {
            let Some(parent) = role.bounds else { continue };
            let types =
                beyond(&role.types, self.roles.get_index(parent.index()).map(|r| &r.1.types));
            if !types.is_empty() {
                excesses.push(Excess::Role { child: RoleId::at(index), parent, types });
            }
        }
        let branches = Branches::new(self);
        for (index, entry) in self.types.values().enumerate() {
            if let Some(parent) = entry.bounds {
                self.excessive_rules(&branches, TypeId::at(index), parent, &mut excesses);
            }
        }
        excesses
    }

    fn excessive_rules(
        &self,
        branches: &Branches,
        child: TypeId,
        parent: TypeId,
        excesses: &mut Vec<Excess>,
    ) {
        let granted = self.granted_to(parent);
        for (rule, allow) in self.av_rules.iter().enumerate() {
            let names =
                |set: TypeId, one: TypeId| self.types[set.index()].members.contains(one.index());
            if allow.kind != AvKind::Allow || !names(allow.source, child) {
                continue;
            }
            let rules = granted.get(&allow.class).map_or(&[][..], Vec::as_slice);
            let targets = self.types[allow.target.index()].members.iter().map(TypeId::at);
            let excess = targets.map(|target| {
                let asked = self.types[target.index()].bounds.unwrap_or(target);
                let here = rules.iter().filter(|granted| names(granted.target, asked));
                (target, allow.perms & !branches.covered(here.copied(), allow.branch))
            });
            if let Some((target, perms)) = excess.into_iter().find(|(_, perms)| *perms != 0) {
                excesses.push(Excess::Rule { rule, child, parent, target, perms });
            }
        }
    }

    /// The `allow` rules, in force or not, that name a type or an attribute of it as their source,
    /// by class.
    fn granted_to(&self, source: TypeId) -> HashMap<ClassId, Vec<&AvRule>> {
        let mut granted: HashMap<ClassId, Vec<&AvRule>> = HashMap::default();
        for rule in &self.av_rules {
            let members = &self.types[rule.source.index()].members;
            if rule.kind == AvKind::Allow && members.contains(source.index()) {
                granted.entry(rule.class).or_default().push(rule);
            }
        }
        granted
    }
}

/// What `set` has and `bound` lacks.
fn beyond(set: &BitSet, bound: Option<&BitSet>) -> BitSet {
    let mut rest = set.clone();
    bound.into_iter().for_each(|bound| rest.subtract(bound));
    rest
}

/// For each condition, a number that conditions of the same meaning share, and whether it is
/// inverted.
struct Branches(Vec<(usize, bool)>);

impl Branches {
    fn new(policy: &Policy) -> Self {
        let mut numbers: HashMap<Meaning, usize> = HashMap::default();
        let number = policy.conditions.iter().map(|condition| {
            let (meaning, inverted) = condition.meaning();
            let next = numbers.len();
            (*numbers.entry(meaning).or_insert(next), inverted)
        });
        Self(number.collect())
    }

    fn key(&self, branch: Branch) -> (usize, bool) {
        let (number, inverted) = self.0[branch.condition.index()];
        (number, branch.when != inverted)
    }

    /// What the rules grant whenever `branch` is in force.
    fn covered<'a>(&self, rules: impl Iterator<Item = &'a AvRule>, branch: Option<Branch>) -> u32 {
        let here = branch.map(|branch| self.key(branch));
        let mut covered = 0;
        let mut conditional: HashMap<usize, [u32; 2]> = HashMap::default();
        for rule in rules {
            match rule.branch.map(|branch| self.key(branch)) {
                Some((number, when)) if Some((number, when)) != here => {
                    conditional.entry(number).or_default()[usize::from(when)] |= rule.perms;
                }
                _ => covered |= rule.perms,
            }
        }
        conditional.values().fold(covered, |covered, [a, b]| covered | (a & b))
    }
}
