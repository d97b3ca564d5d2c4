//! Rules that match a pattern, like sesearch.

use super::matching::{Pattern, Side};
use crate::policy::{
    AvKind, AvRule, Branch, Policy, Range, SourceLine, TypeRule, TypeRuleKind, XpermRule,
};
use crate::{ClassId, Engine, RoleId, TypeId};

/// A kind of rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Access vector rules of a kind.
    Av(AvKind),
    /// Rules on extended permissions of a kind.
    Xperm(AvKind),
    /// Type rules of a kind; `typetransition` with those that name the object.
    Type(TypeRuleKind),
    /// `rangetransition`.
    RangeTransition,
    /// `roleallow`.
    RoleAllow,
    /// `roletransition`.
    RoleTransition,
}

/// A pattern of rules. What is `None` or empty matches everything.
#[derive(Clone, Debug, Default)]
pub struct Query<'a> {
    /// The kinds of rule.
    pub kinds: Vec<Which>,
    /// Type, attribute or role of the subject.
    pub source: Option<&'a str>,
    /// Type or attribute of the object; the new role of a `roleallow`.
    pub target: Option<&'a str>,
    /// Class of the object. Rules without a class do not match any.
    pub class: Option<&'a str>,
    /// Permissions, of which a rule must name at least one; `ioctl` and `nlmsg` for extended ones.
    pub perms: Vec<&'a str>,
    /// Ranges of extended permissions, of which a rule must name at least one.
    pub xperms: Vec<(u16, u16)>,
    /// Match a type by the attributes that it has, too, and an attribute by its types.
    pub expand: bool,
    /// Leave out rules of branches that are not in force.
    pub active_only: bool,
}

/// The pattern names something that the policy lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policy has no {kind} `{name}`")]
pub struct QueryError {
    /// What was looked for.
    pub kind: &'static str,
    /// The name.
    pub name: String,
}

/// A rule that matches.
#[derive(Clone, Copy, Debug)]
pub enum MatchingRule<'a> {
    /// An access vector rule.
    Av(&'a AvRule),
    /// A rule on extended permissions.
    Xperm(&'a XpermRule),
    /// A type rule.
    Type(&'a TypeRule),
    /// A `typetransition` with a name.
    Named {
        /// Type of the subject.
        source: TypeId,
        /// Type of the related object.
        target: TypeId,
        /// Class of the new object.
        class: ClassId,
        /// Its name.
        name: &'a str,
        /// Its type.
        result: TypeId,
    },
    /// A `rangetransition`.
    Range {
        /// Type of the subject.
        source: TypeId,
        /// Type of the related object.
        target: TypeId,
        /// Class of the new object.
        class: ClassId,
        /// Its range.
        range: &'a Range,
    },
    /// A `roleallow`: from, to.
    RoleAllow(RoleId, RoleId),
    /// A `roletransition`.
    RoleTransition {
        /// Role of the subject.
        source: RoleId,
        /// Type of the related object.
        target: TypeId,
        /// Class of the new object.
        class: ClassId,
        /// Its role.
        result: RoleId,
    },
}

impl MatchingRule<'_> {
    /// The rule as CIL spells it.
    #[must_use]
    pub fn format(&self, policy: &Policy) -> String {
        match *self {
            Self::Av(rule) => policy.format_rule(rule),
            Self::Xperm(rule) => policy.format_xperm_rule(rule),
            Self::Type(rule) => policy.format_type_rule(rule),
            Self::Named { source, target, class, name, result } => {
                policy.format_name_transition((source, target, class), name, result)
            }
            Self::Range { source, target, class, range } => {
                policy.format_range_transition((source, target, class), range)
            }
            Self::RoleAllow(from, to) => policy.format_role_allow(from, to),
            Self::RoleTransition { source, target, class, result } => {
                policy.format_role_transition((source, target, class), result)
            }
        }
    }

    /// The branch that it stands in.
    #[must_use]
    pub fn branch(&self) -> Option<Branch> {
        match self {
            Self::Av(rule) => rule.branch,
            Self::Xperm(rule) => rule.branch,
            Self::Type(rule) => rule.branch,
            _ => None,
        }
    }

    /// Where it was written.
    #[must_use]
    pub fn place(&self) -> Option<SourceLine> {
        match self {
            Self::Av(rule) => rule.place,
            Self::Xperm(rule) => rule.place,
            Self::Type(rule) => rule.place,
            _ => None,
        }
    }
}

impl Engine {
    /// The rules that match, kind by kind: access vectors, extended permissions, types and roles in
    /// the order of the policy, others in that of their names.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when the pattern names something that the policy lacks.
    pub fn query(&self, query: &Query<'_>) -> Result<Vec<MatchingRule<'_>>, QueryError> {
        let policy = self.policy();
        let pattern = Pattern::new(policy, query)?;
        let mut found: Vec<MatchingRule<'_>> = Vec::new();
        let av = policy.av_rules.iter().filter(|rule| {
            pattern.wants(Which::Av(rule.kind))
                && pattern.key(rule.source, rule.target, rule.class)
                && pattern.perms(rule)
        });
        found.extend(av.map(MatchingRule::Av));
        let xperms = policy.xperm_rules.iter().filter(|rule| {
            pattern.wants(Which::Xperm(rule.kind))
                && pattern.key(rule.source, rule.target, rule.class)
                && pattern.xperms(rule)
        });
        found.extend(xperms.map(MatchingRule::Xperm));
        if query.perms.is_empty() && query.xperms.is_empty() {
            type_rules(policy, &pattern, &mut found);
            range_transitions(policy, &pattern, &mut found);
            role_rules(policy, &pattern, &mut found);
        }
        if query.active_only {
            found.retain(|rule| rule.branch().is_none_or(|branch| self.index().holds(branch)));
        }
        Ok(found)
    }
}

fn type_rules<'a>(policy: &'a Policy, pattern: &Pattern<'_>, found: &mut Vec<MatchingRule<'a>>) {
    let rules = policy.type_rules.iter().filter(|TypeRule { key, .. }| {
        pattern.wants(Which::Type(key.kind)) && pattern.key(key.source, key.target, key.class)
    });
    found.extend(rules.map(MatchingRule::Type));
    if !pattern.wants(Which::Type(TypeRuleKind::Transition)) {
        return;
    }
    let mut named = Vec::new();
    for (sources, target, class, name, result) in policy.name_transitions.iter() {
        let sources = sources.iter().map(TypeId::at);
        let sources = sources.filter(|source| pattern.key(*source, target, class));
        named.extend(sources.map(|source| (name, target, class, source, result)));
    }
    named.sort_unstable();
    found.extend(named.into_iter().map(|(name, target, class, source, result)| {
        MatchingRule::Named { source, target, class, name, result }
    }));
}

fn range_transitions<'a>(
    policy: &'a Policy,
    pattern: &Pattern<'_>,
    found: &mut Vec<MatchingRule<'a>>,
) {
    let rules = policy.range_transitions.iter().filter(|((source, target, class), _)| {
        pattern.wants(Which::RangeTransition) && pattern.key(*source, *target, *class)
    });
    let mut rules: Vec<_> = rules.collect();
    rules.sort_unstable_by_key(|(key, _)| **key);
    found.extend(rules.into_iter().map(|(key, range)| {
        let (source, target, class) = *key;
        MatchingRule::Range { source, target, class, range }
    }));
}

fn role_rules(policy: &Policy, pattern: &Pattern<'_>, found: &mut Vec<MatchingRule<'_>>) {
    let allows = policy.role_allows.iter().filter(|(from, to)| {
        pattern.wants(Which::RoleAllow)
            && pattern.class.is_none()
            && pattern.role(Side::Source, *from)
            && pattern.role(Side::Target, *to)
    });
    let mut allows: Vec<_> = allows.copied().collect();
    allows.sort_unstable();
    found.extend(allows.into_iter().map(|(from, to)| MatchingRule::RoleAllow(from, to)));
    let transitions = policy.role_transitions.iter().filter(|((source, target, class), _)| {
        pattern.wants(Which::RoleTransition)
            && pattern.role(Side::Source, *source)
            && pattern.type_(Side::Target, *target)
            && pattern.class.is_none_or(|wanted| wanted == *class)
    });
    let mut transitions: Vec<_> = transitions.collect();
    transitions.sort_unstable();
    found.extend(transitions.into_iter().map(|((source, target, class), result)| {
        MatchingRule::RoleTransition {
            source: *source,
            target: *target,
            class: *class,
            result: *result,
        }
    }));
}
