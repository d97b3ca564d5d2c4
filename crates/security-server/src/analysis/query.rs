//! Rules that match a pattern, like sesearch.

use crate::policy::{AvKind, AvRule, Policy, TypeRule, TypeRuleKind};
use crate::{ClassId, Engine, TypeId};

/// Which rules are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Access vector rules of a kind.
    Av(AvKind),
    /// Type rules of a kind.
    Type(TypeRuleKind),
}

/// A pattern of rules. What is `None` matches everything.
#[derive(Clone, Debug, Default)]
pub struct Query<'a> {
    /// The kinds of rule; empty for all.
    pub kinds: Vec<Which>,
    /// Type or attribute of the subject.
    pub source: Option<&'a str>,
    /// Type or attribute of the object.
    pub target: Option<&'a str>,
    /// Class of the object.
    pub class: Option<&'a str>,
    /// Permissions, of which a rule must name at least one.
    pub perms: Vec<&'a str>,
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
pub enum Found<'a> {
    /// An access vector rule.
    Av(&'a AvRule),
    /// A type rule.
    Type(&'a TypeRule),
}

impl Engine {
    /// The rules that match, in the order of the policy.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when the pattern names something that the policy lacks.
    pub fn query(&self, query: &Query<'_>) -> Result<Vec<Found<'_>>, QueryError> {
        let policy = self.policy();
        let source = query.source.map(|name| find_type(policy, name)).transpose()?;
        let target = query.target.map(|name| find_type(policy, name)).transpose()?;
        let class = query.class.map(|name| find_class(policy, name)).transpose()?;
        let pattern = Pattern { policy, query, source, target };
        let active = |branch: Option<_>| {
            !query.active_only || branch.is_none_or(|branch| self.index().holds(branch))
        };
        let wanted = |which| query.kinds.is_empty() || query.kinds.contains(&which);
        let av = policy.av_rules.iter().filter(|rule| {
            wanted(Which::Av(rule.kind))
                && class.is_none_or(|class| class == rule.class)
                && active(rule.branch)
                && pattern.types(rule.source, rule.target)
                && pattern.perms(rule)
        });
        let types = policy.type_rules.iter().filter(|rule| {
            wanted(Which::Type(rule.key.kind))
                && query.perms.is_empty()
                && class.is_none_or(|class| class == rule.key.class)
                && active(rule.branch)
                && pattern.types(rule.key.source, rule.key.target)
        });
        Ok(av.map(Found::Av).chain(types.map(Found::Type)).collect())
    }
}

struct Pattern<'a> {
    policy: &'a Policy,
    query: &'a Query<'a>,
    source: Option<TypeId>,
    target: Option<TypeId>,
}

impl Pattern<'_> {
    fn types(&self, source: TypeId, target: TypeId) -> bool {
        self.source.is_none_or(|wanted| self.matches(wanted, source))
            && self.target.is_none_or(|wanted| self.matches(wanted, target))
    }

    fn matches(&self, wanted: TypeId, named: TypeId) -> bool {
        if wanted == named {
            return true;
        }
        let members = |id: TypeId| &self.policy.types[id.index()].members;
        self.query.expand && members(wanted).iter().any(|type_| members(named).contains(type_))
    }

    fn perms(&self, rule: &AvRule) -> bool {
        let (_, class) = match self.policy.classes.get_index(rule.class.index()) {
            Some(entry) => entry,
            None => return false,
        };
        self.query.perms.is_empty()
            || self
                .query
                .perms
                .iter()
                .filter_map(|name| class.permission(name))
                .any(|bit| rule.perms & bit != 0)
    }
}

fn find_type(policy: &Policy, name: &str) -> Result<TypeId, QueryError> {
    let found = policy.type_or_attribute(name);
    found.ok_or_else(|| QueryError { kind: "type or attribute", name: name.to_owned() })
}

fn find_class(policy: &Policy, name: &str) -> Result<ClassId, QueryError> {
    let found = policy.class(name);
    found.ok_or_else(|| QueryError { kind: "class", name: name.to_owned() })
}
