//! Whether a rule matches a pattern.

use super::query::{Query, QueryError, Which};
use crate::policy::{AvRule, Policy, XpermKind, XpermRule};
use crate::{ClassId, RoleId, TypeId};

/// A part of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Source,
    Target,
}

/// What a name stands for: a type or attribute, a role, or both.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    type_: Option<TypeId>,
    role: Option<RoleId>,
}

/// A query with its names resolved.
#[derive(Debug)]
pub(super) struct Pattern<'a> {
    policy: &'a Policy,
    query: &'a Query<'a>,
    source: Option<Named>,
    target: Option<Named>,
    pub(super) class: Option<ClassId>,
}

impl<'a> Pattern<'a> {
    pub(super) fn new(policy: &'a Policy, query: &'a Query<'a>) -> Result<Self, QueryError> {
        let name = |name: &str| {
            let type_ = policy.type_or_attribute(name);
            let role = policy.roles.get_index_of(name).map(RoleId::at);
            match (type_, role) {
                (None, None) => Err(unknown("type, attribute or role", name)),
                _ => Ok(Named { type_, role }),
            }
        };
        let class = |name: &str| policy.class(name).ok_or_else(|| unknown("class", name));
        let pattern = Self {
            policy,
            query,
            source: query.source.map(name).transpose()?,
            target: query.target.map(name).transpose()?,
            class: query.class.map(class).transpose()?,
        };
        for name in &query.perms {
            let known = policy.classes.values().any(|class| class.permission(name).is_some());
            if !known && !matches!(*name, "ioctl" | "nlmsg") {
                return Err(unknown("permission", name));
            }
        }
        Ok(pattern)
    }

    pub(super) fn wants(&self, which: Which) -> bool {
        self.query.kinds.is_empty() || self.query.kinds.contains(&which)
    }

    /// Whether source, target and class match.
    pub(super) fn key(&self, source: TypeId, target: TypeId, class: ClassId) -> bool {
        self.class.is_none_or(|wanted| wanted == class)
            && self.type_(Side::Source, source)
            && self.type_(Side::Target, target)
    }

    fn wanted(&self, side: Side) -> Option<Named> {
        match side {
            Side::Source => self.source,
            Side::Target => self.target,
        }
    }

    pub(super) fn type_(&self, side: Side, named: TypeId) -> bool {
        let Some(wanted) = self.wanted(side) else { return true };
        let Some(wanted) = wanted.type_ else { return false };
        let members = |id: TypeId| &self.policy.types[id.index()].members;
        wanted == named
            || self.query.expand
                && members(wanted).iter().any(|type_| members(named).contains(type_))
    }

    pub(super) fn role(&self, side: Side, role: RoleId) -> bool {
        self.wanted(side).is_none_or(|wanted| wanted.role == Some(role))
    }

    pub(super) fn perms(&self, rule: &AvRule) -> bool {
        if self.query.perms.is_empty() {
            return self.query.xperms.is_empty();
        }
        let class = self.policy.classes.get_index(rule.class.index());
        let bits = class.into_iter().flat_map(|(_, class)| {
            self.query.perms.iter().filter_map(|name| class.permission(name))
        });
        self.query.xperms.is_empty() && bits.fold(0, |all, bit| all | bit) & rule.perms != 0
    }

    pub(super) fn xperms(&self, rule: &XpermRule) -> bool {
        let family = match rule.family {
            XpermKind::Ioctl => "ioctl",
            XpermKind::Nlmsg => "nlmsg",
        };
        let numbers = rule.xperms.numbers();
        let mut ranges = self.query.xperms.iter();
        (self.query.perms.is_empty() || self.query.perms.contains(&family))
            && (self.query.xperms.is_empty()
                || ranges.any(|(low, high)| {
                    (*low..=*high).any(|number| numbers.contains(usize::from(number)))
                }))
    }
}

fn unknown(kind: &'static str, name: &str) -> QueryError {
    QueryError { kind, name: name.to_owned() }
}
