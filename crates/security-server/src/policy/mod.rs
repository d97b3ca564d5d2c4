//! The policy database: what a policy says, whatever language said it.
//!
//! Both front ends ([`crate::cil`] and [`crate::policydb`]) fill a [`Policy`]; the decision index,
//! the tools and the exporter read it. Names are resolved and attributes are evaluated, but rules
//! are as written: a rule on an attribute is one rule.

mod condition;
mod constraint;
mod context;
mod context_text;
mod labels;
mod mls;
mod rules;

pub use condition::{BoolStep, Condition, ConditionTooDeep, Meaning};
pub use constraint::{
    Comparison, Constraint, ConstraintTooDeep, Contexts, Expr, LevelPair, Program, Step, Subject,
    Symbol,
};
pub use context::{Context, ContextError};
pub use labels::{
    DeviceLabel, FileLabel, FsUse, FsUseKind, Genfs, Labels, Netif, NodeLabel, PortLabel,
};
pub use mls::{Level, Range};
pub use rules::{
    AvKind, AvRule, Branch, NameTransitions, Neverallow, SourceLine, TypeKey, TypeRule,
    TypeRuleKind, XpermKind, XpermRule, Xperms,
};

use crate::hash::{FixedState, HashMap, HashSet};
use crate::{BitSet, ClassId, RoleId, TypeId};
use indexmap::IndexMap;

/// A table of named things; the n-th entry has number n.
pub type Names<T> = IndexMap<Box<str>, T, FixedState>;

/// What becomes of classes and permissions that an object manager knows and the policy does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandleUnknown {
    /// They are denied.
    #[default]
    Deny,
    /// They are allowed.
    Allow,
    /// The policy is not loaded.
    Reject,
}

/// Which of creator and parent object a new object's user, role or type is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultFrom {
    /// The creator.
    Source,
    /// The related object.
    Target,
}

/// Which levels a new object's range is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultRange {
    /// The low level of the creator or the related object.
    Low(DefaultFrom),
    /// The high level.
    High(DefaultFrom),
    /// The whole range.
    LowHigh(DefaultFrom),
    /// Greatest lower and least upper bound of both ranges.
    GlbLub,
}

/// A class of objects.
#[derive(Clone, Debug, Default)]
pub struct Class {
    /// Names of the permissions: the n-th is bit n. Those of the common come first.
    pub permissions: Names<()>,
    /// The common that the first permissions come from.
    pub common: Option<Box<str>>,
    /// Where a new object's user comes from.
    pub default_user: Option<DefaultFrom>,
    /// Where a new object's role comes from.
    pub default_role: Option<DefaultFrom>,
    /// Where a new object's type comes from.
    pub default_type: Option<DefaultFrom>,
    /// Where a new object's range comes from.
    pub default_range: Option<DefaultRange>,
    /// `constrain` and `mlsconstrain`.
    pub constraints: Vec<Constraint>,
    /// `validatetrans` and `mlsvalidatetrans`.
    pub validations: Vec<Constraint>,
}

impl Class {
    /// The access vector of all its permissions.
    #[must_use]
    pub fn all_permissions(&self) -> u32 {
        u32::MAX.checked_shr(32 - self.permissions.len() as u32).unwrap_or(0)
    }

    /// The bit of the permission of that name.
    #[must_use]
    pub fn permission(&self, name: &str) -> Option<u32> {
        self.permissions.get_index_of(name).map(|bit| 1 << bit)
    }

    /// The names of the permissions in `av`.
    pub fn names_of(&self, av: u32) -> impl Iterator<Item = &str> {
        let names = self.permissions.keys().enumerate();
        names.filter(move |(bit, _)| av & (1 << bit) != 0).map(|(_, name)| &**name)
    }
}

/// A role.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// The types that the role may have.
    pub types: BitSet,
    /// The role that bounds it.
    pub bounds: Option<RoleId>,
    /// The roles that it dominates, itself included.
    pub dominates: BitSet,
}

/// What an entry of the table of types is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// A type.
    Type,
    /// A set of types.
    Attribute,
    /// A number that a binary policy does not use.
    Unused,
}

/// A type or a type attribute.
#[derive(Clone, Debug)]
pub struct Type {
    /// What it is.
    pub kind: TypeKind,
    /// The type that bounds it.
    pub bounds: Option<TypeId>,
    /// Where that was written.
    pub bounds_place: Option<SourceLine>,
    /// Whether the domain is permissive: denials are recorded, not enforced.
    pub permissive: bool,
    /// Whether the domain's denials are never recorded.
    pub neveraudit: bool,
    /// For an attribute, its types; for a type, the set of itself.
    pub members: BitSet,
    /// For a type, itself and the attributes that it has, ascending.
    pub attributes: Vec<TypeId>,
}

impl Type {
    /// An entry without members.
    #[must_use]
    pub fn new(kind: TypeKind) -> Self {
        Self {
            kind,
            bounds: None,
            bounds_place: None,
            permissive: false,
            neveraudit: false,
            members: BitSet::new(),
            attributes: Vec::new(),
        }
    }
}

/// A user.
#[derive(Clone, Debug, Default)]
pub struct User {
    /// The roles that the user may have.
    pub roles: BitSet,
    /// The clearance. Present in every user of a multi-level policy.
    pub range: Option<Range>,
    /// The level of a new session.
    pub level: Option<Level>,
    /// The user that bounds it.
    pub bounds: Option<crate::UserId>,
}

/// What a policy says.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Whether contexts have ranges.
    pub mls: bool,
    /// What becomes of classes and permissions that the policy lacks.
    pub handle_unknown: HandleUnknown,
    /// Policy capabilities, by name.
    pub capabilities: Vec<Box<str>>,
    /// Permissions that classes share.
    pub commons: Names<Names<()>>,
    /// Classes.
    pub classes: Names<Class>,
    /// Roles; the first is `object_r`.
    pub roles: Names<Role>,
    /// Types and attributes.
    pub types: Names<Type>,
    /// Other names of types.
    pub type_aliases: HashMap<Box<str>, TypeId>,
    /// Users.
    pub users: Names<User>,
    /// Sensitivities, lowest first, each with the categories that it may carry.
    pub sensitivities: Names<BitSet>,
    /// Other names of sensitivities.
    pub sensitivity_aliases: HashMap<Box<str>, crate::SensId>,
    /// Categories.
    pub categories: Names<()>,
    /// Other names of categories.
    pub category_aliases: HashMap<Box<str>, u32>,
    /// Booleans, with the state that the policy gives them.
    pub booleans: Names<bool>,
    /// The expressions over booleans that rules depend on.
    pub conditions: Vec<Condition>,
    /// `allow`, `auditallow`, `dontaudit`.
    pub av_rules: Vec<AvRule>,
    /// `allowx`, `auditallowx`, `dontauditx`.
    pub xperm_rules: Vec<XpermRule>,
    /// `typetransition`, `typemember`, `typechange`, expanded to types.
    pub type_rules: Vec<TypeRule>,
    /// `typetransition` with a name.
    pub name_transitions: NameTransitions,
    /// `roletransition`: (role of the subject, type of the object, class) to new role.
    pub role_transitions: HashMap<(RoleId, TypeId, ClassId), RoleId>,
    /// `roleallow`.
    pub role_allows: HashSet<(RoleId, RoleId)>,
    /// `rangetransition`.
    pub range_transitions: HashMap<(TypeId, TypeId, ClassId), Range>,
    /// Initial SIDs, in the order of their numbers, with their context if they have one.
    pub initial_sids: Names<Option<Context>>,
    /// Labelling rules.
    pub labels: Labels,
    /// `neverallow` and `neverallowx`, to be checked; they grant and deny nothing.
    pub neverallows: Vec<Neverallow>,
    /// Names of the files that places refer to.
    pub sources: Vec<Box<str>>,
    /// Members of sets and rules that its text stands for, with those that names, labels and
    /// constraints count for; 0 if it was not compiled from a text.
    pub members: usize,
}

/// Bytes that a member of a set or of a rule takes at most, with its share of the tables for
/// decisions: 129 to 134 of a server's memory were measured for rules on all types and classes,
/// which take most.
pub(crate) const MEMBER_BYTES: usize = 136;

impl Policy {
    /// Bytes of memory that it takes with the tables for decisions, at most and about, aside from
    /// what grows with its text.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.members.saturating_mul(MEMBER_BYTES)
    }

    /// The class of that name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<ClassId> {
        self.classes.get_index_of(name).map(ClassId::at)
    }

    /// The type or attribute of that name or alias.
    #[must_use]
    pub fn type_or_attribute(&self, name: &str) -> Option<TypeId> {
        let found = self.types.get_index_of(name).map(TypeId::at);
        found.or_else(|| self.type_aliases.get(name).copied())
    }

    /// The name of a type or attribute.
    #[must_use]
    pub fn type_name(&self, id: TypeId) -> &str {
        self.types.get_index(id.index()).map_or("?", |(name, _)| name)
    }

    /// The name of a role.
    #[must_use]
    pub fn role_name(&self, id: RoleId) -> &str {
        self.roles.get_index(id.index()).map_or("?", |(name, _)| name)
    }

    /// The name of a user.
    #[must_use]
    pub fn user_name(&self, id: crate::UserId) -> &str {
        self.users.get_index(id.index()).map_or("?", |(name, _)| name)
    }

    /// The name of a class.
    #[must_use]
    pub fn class_name(&self, id: ClassId) -> &str {
        self.classes.get_index(id.index()).map_or("?", |(name, _)| name)
    }

    /// Whether the look-up tables, which have a cell for each group of types and each class, could
    /// take more than 128 MiB. The largest policies in use need a hundredth of that.
    pub(crate) fn is_too_large(&self) -> bool {
        self.types.len().saturating_mul(self.classes.len()) > 1 << 24
    }

    /// Writes each type's attributes from the attributes' members.
    pub(crate) fn index_attributes(&mut self) {
        let mut attributes: Vec<Vec<TypeId>> = vec![Vec::new(); self.types.len()];
        for (index, entry) in self.types.values().enumerate() {
            for member in entry.members.iter() {
                attributes[member].push(TypeId::at(index));
            }
        }
        for (entry, attributes) in self.types.values_mut().zip(attributes) {
            entry.attributes = attributes;
        }
    }
}
