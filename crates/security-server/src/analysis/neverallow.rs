//! Promises that rules break.

use crate::policy::{AvKind, Neverallow, Policy, XpermKind};
use crate::{BitSet, TypeId};

/// A rule that grants what a `neverallow` forbids.
#[derive(Clone, Debug)]
pub struct Violation<'a> {
    /// The promise.
    pub neverallow: &'a Neverallow,
    /// The rule that breaks it, as a number of [`Policy::av_rules`].
    pub rule: usize,
    /// A type of the subject for which it does.
    pub source: TypeId,
    /// A type of the object for which it does.
    pub target: TypeId,
    /// The permissions that are granted and must not be.
    pub perms: u32,
}

impl Policy {
    /// Every pair of a `neverallow` and a rule that breaks it, each with one example of types.
    /// Rules in both branches of conditions count.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation<'_>> {
        self.neverallows.iter().flat_map(|promise| self.breaches(promise)).collect()
    }

    fn breaches<'a>(&'a self, promise: &'a Neverallow) -> impl Iterator<Item = Violation<'a>> {
        self.av_rules.iter().enumerate().filter_map(move |(rule, allow)| {
            let perms = allow.perms & promise.perms;
            if allow.kind != AvKind::Allow || allow.class != promise.class || perms == 0 {
                return None;
            }
            let (source, target) = self.example(promise, allow.source, allow.target)?;
            Some(Violation { neverallow: promise, rule, source, target, perms })
        })
    }

    /// Types that both the rule's source and target stand for and the promise is about.
    fn example(
        &self,
        promise: &Neverallow,
        source: TypeId,
        target: TypeId,
    ) -> Option<(TypeId, TypeId)> {
        let mut sources = self.types[source.index()].members.clone();
        sources.intersect_with(&promise.sources);
        let targets = &self.types[target.index()].members;
        let wanted = |source: usize| {
            let mut wanted = targets.clone();
            if let Some(promised) = &promise.targets {
                wanted.intersect_with(promised);
            }
            wanted.iter().find(|target| {
                promise.covers(source, *target) && self.breaks_xperms(promise, source, *target)
            })
        };
        sources.iter().find_map(|source| {
            wanted(source).map(|target| (TypeId::at(source), TypeId::at(target)))
        })
    }

    /// Whether the pair may use a forbidden extended permission: one that is granted, or any if
    /// none is named.
    fn breaks_xperms(&self, promise: &Neverallow, source: usize, target: usize) -> bool {
        let Some((family, ranges)) = &promise.xperms else { return true };
        let granted = self.granted_xperms(promise, *family, source, target);
        granted.is_none_or(|granted| {
            let mut numbers = ranges.iter().flat_map(|(low, high)| *low..=*high);
            numbers.any(|number| granted.contains(usize::from(number)))
        })
    }

    fn granted_xperms(
        &self,
        promise: &Neverallow,
        family: XpermKind,
        source: usize,
        target: usize,
    ) -> Option<BitSet> {
        let is = |name: TypeId, type_: usize| self.types[name.index()].members.contains(type_);
        let mut granted = None;
        for rule in &self.xperm_rules {
            if rule.class == promise.class
                && rule.family == family
                && rule.kind == AvKind::Allow
                && is(rule.source, source)
                && is(rule.target, target)
            {
                granted.get_or_insert_with(BitSet::new).union_with(&rule.xperms.numbers());
            }
        }
        granted
    }
}
