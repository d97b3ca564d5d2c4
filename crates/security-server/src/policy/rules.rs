//! Rules on types: access vectors, extended permissions, labels of new objects.

use crate::hash::HashMap;
use crate::{BitSet, ClassId, CondId, TypeId};

/// Where a rule was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// Index into [`super::Policy::sources`].
    pub source: u32,
    /// Line, counted from 1.
    pub line: u32,
}

/// The branch of a condition that a rule stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Branch {
    /// The condition.
    pub condition: CondId,
    /// The value of the condition for which the rule holds.
    pub when: bool,
}

/// What an access vector rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AvKind {
    /// Grants.
    Allow,
    /// Records what is granted.
    AuditAllow,
    /// Does not record what is denied.
    DontAudit,
}

impl AvKind {
    /// The keyword.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AuditAllow => "auditallow",
            Self::DontAudit => "dontaudit",
        }
    }
}

/// `(allow source target (class (permissions)))` and its kin.
#[derive(Clone, Copy, Debug)]
pub struct AvRule {
    /// Type or attribute of the subject.
    pub source: TypeId,
    /// Type or attribute of the object.
    pub target: TypeId,
    /// Class of the object.
    pub class: ClassId,
    /// What the rule does.
    pub kind: AvKind,
    /// The permissions.
    pub perms: u32,
    /// The branch that it stands in.
    pub branch: Option<Branch>,
    /// Where it was written.
    pub place: Option<SourceLine>,
}

/// The family of operations that an extended permission number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum XpermKind {
    /// `ioctl` commands.
    Ioctl,
    /// Netlink message types.
    Nlmsg,
}

/// Extended permissions of one rule: numbers of 16 bits, high byte (driver) and low byte
/// (function).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Xperms {
    /// Functions of one driver.
    Functions {
        /// The high byte.
        driver: u8,
        /// The low bytes.
        functions: [u64; 4],
    },
    /// Whole drivers.
    Drivers([u64; 4]),
}

/// `(allowx source target (kind class (numbers)))` and its kin.
#[derive(Clone, Debug)]
pub struct XpermRule {
    /// Type or attribute of the subject.
    pub source: TypeId,
    /// Type or attribute of the object.
    pub target: TypeId,
    /// Class of the object.
    pub class: ClassId,
    /// What the rule does.
    pub kind: AvKind,
    /// The family of operations.
    pub family: XpermKind,
    /// The numbers.
    pub xperms: Xperms,
    /// The branch that it stands in.
    pub branch: Option<Branch>,
    /// Where it was written.
    pub place: Option<SourceLine>,
}

/// Which question a type rule answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TypeRuleKind {
    /// The label of a new object.
    Transition,
    /// The label of a member of a polyinstantiated object.
    Member,
    /// The label that an object is relabelled to.
    Change,
}

impl TypeRuleKind {
    /// The keyword.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Transition => "typetransition",
            Self::Member => "typemember",
            Self::Change => "typechange",
        }
    }
}

/// What a type rule is looked up by. Types only, no attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeKey {
    /// The question.
    pub kind: TypeRuleKind,
    /// Type of the subject.
    pub source: TypeId,
    /// Type of the object.
    pub target: TypeId,
    /// Class of the new object.
    pub class: ClassId,
}

/// `(typetransition source target class result)` and its kin.
#[derive(Clone, Copy, Debug)]
pub struct TypeRule {
    /// What it is looked up by.
    pub key: TypeKey,
    /// The type of the result.
    pub result: TypeId,
    /// The branch that it stands in.
    pub branch: Option<Branch>,
    /// Where it was written.
    pub place: Option<SourceLine>,
}

/// `(typetransition source target class name result)`, by target, class and name.
#[derive(Clone, Debug, Default)]
pub struct NameTransitions {
    by_name: HashMap<Box<str>, ByTarget>,
}

/// Rules of one name: for each target and class, sources and result.
type ByTarget = HashMap<(TypeId, ClassId), Vec<(BitSet, TypeId)>>;

impl NameTransitions {
    /// The type of a new object of that name.
    #[must_use]
    pub fn find(
        &self,
        source: TypeId,
        target: TypeId,
        class: ClassId,
        name: &str,
    ) -> Option<TypeId> {
        let rules = self.by_name.get(name)?.get(&(target, class))?;
        rules.iter().find(|rule| rule.0.contains(source.index())).map(|rule| rule.1)
    }

    /// Adds rules for all of `sources`. The first rule of a source is the one that counts.
    pub(crate) fn add(
        &mut self,
        sources: &BitSet,
        target: TypeId,
        class: ClassId,
        name: &str,
        result: TypeId,
    ) {
        if !self.by_name.contains_key(name) {
            self.by_name.insert(name.into(), HashMap::default());
        }
        let Some(rules) = self.by_name.get_mut(name) else { return };
        let rules = rules.entry((target, class)).or_default();
        match rules.iter_mut().find(|rule| rule.1 == result) {
            Some(rule) => rule.0.union_with(sources),
            None => rules.push((sources.clone(), result)),
        }
    }

    /// Every rule: sources, target, class, name, result, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&BitSet, TypeId, ClassId, &str, TypeId)> {
        self.by_name.iter().flat_map(|(name, by_target)| {
            by_target.iter().flat_map(move |((target, class), rules)| {
                rules
                    .iter()
                    .map(move |(sources, result)| (sources, *target, *class, &**name, *result))
            })
        })
    }
}

/// `(neverallow source target (class (permissions)))`: a promise that the check verifies.
#[derive(Clone, Debug)]
pub struct Neverallow {
    /// The types of the subject.
    pub sources: BitSet,
    /// The types of the object; `None` when the target is the subject itself.
    pub targets: Option<BitSet>,
    /// With `targets`: only objects of another type than the subject's.
    pub except_self: bool,
    /// Class of the object.
    pub class: ClassId,
    /// The permissions that must not be granted.
    pub perms: u32,
    /// For `neverallowx`: the family and numbers that must not be granted with `perms`.
    pub xperms: Option<(XpermKind, Vec<(u16, u16)>)>,
    /// The rule as it was written.
    pub text: Box<str>,
    /// Where it was written.
    pub place: Option<SourceLine>,
}
