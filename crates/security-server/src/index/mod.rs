//! Rules compiled for look-up.
//!
//! A question names two types and a class. Each type stands for itself and for its attributes, so
//! the answer is the union of the rules of all pairs of them. What makes it fast:
//!
//! - rules of one (source, class) lie in one *row*, sorted by target, with a signature of its
//!   targets;
//! - types that have the same attributes form a *group*: for each (group, class) the rows that
//!   exist, and the attributes that any rule of the class names as a target, are listed once. A
//!   look-up walks two short lists;
//! - values of conditional rules are part of the same table, and are filled in when booleans
//!   change.

mod groups;
mod rows;
mod xperms;

pub use rows::Av;
pub use xperms::XpermSets;

use crate::hash::HashMap;
use crate::policy::{Policy, TypeKey};
use crate::{ClassId, CondId, TypeId};
use groups::Groups;
use rows::Rows;
use std::sync::Arc;
use xperms::XpermIndex;

/// The compiled rules of a policy, without the state of its booleans.
#[derive(Debug)]
struct Tables {
    rows: Rows,
    groups: Groups,
    xperms: XpermIndex,
    types: HashMap<TypeKey, TypeId>,
    conditional_types: HashMap<TypeKey, Vec<(crate::policy::Branch, TypeId)>>,
}

/// The compiled rules of a policy for one state of its booleans.
#[derive(Clone, Debug)]
pub struct Index {
    tables: Arc<Tables>,
    /// The value of each entry of the rows.
    values: Arc<[Av]>,
    /// Whether each condition holds.
    conditions: Arc<[bool]>,
}

impl Index {
    /// Compiles the rules of `policy` for the given states of its booleans.
    #[must_use]
    pub fn new(policy: &Policy, booleans: &[bool]) -> Self {
        let rows = Rows::new(&policy.av_rules);
        let groups = Groups::new(policy, &rows);
        let (types, conditional_types) = type_tables(policy);
        let xperms = XpermIndex::new(&policy.xperm_rules);
        let tables = Arc::new(Tables { rows, groups, xperms, types, conditional_types });
        Self::with_state(tables, policy, booleans)
    }

    /// The same rules for other states of the booleans.
    #[must_use]
    pub fn with_booleans(&self, policy: &Policy, booleans: &[bool]) -> Self {
        Self::with_state(Arc::clone(&self.tables), policy, booleans)
    }

    fn with_state(tables: Arc<Tables>, policy: &Policy, booleans: &[bool]) -> Self {
        let conditions: Arc<[bool]> =
            policy.conditions.iter().map(|condition| condition.holds(booleans)).collect();
        let values = tables.rows.values(&conditions);
        Self { tables, values, conditions }
    }

    /// Whether a condition holds.
    #[must_use]
    pub fn condition(&self, id: CondId) -> bool {
        self.conditions.get(id.index()).copied().unwrap_or(false)
    }

    /// What the rules, and nothing else, say about one question.
    #[inline]
    #[must_use]
    pub fn rules(&self, source: TypeId, target: TypeId, class: ClassId) -> Av {
        let Tables { rows, groups, .. } = &*self.tables;
        let targets = groups.targets(target, class);
        let wanted = groups::Targets { own: target, attributes: targets };
        let mut av = Av::default();
        if let Some(row) = rows.find(source, class) {
            rows.collect(row, &wanted, &self.values, &mut av);
        }
        for row in groups.rows(source, class) {
            rows.collect(*row, &wanted, &self.values, &mut av);
        }
        av
    }

    /// The type that a type rule gives; rules outside conditions come first.
    #[must_use]
    pub fn type_rule(&self, key: &TypeKey) -> Option<TypeId> {
        if let Some(found) = self.tables.types.get(key) {
            return Some(*found);
        }
        let rules = self.tables.conditional_types.get(key)?;
        let active = rules.iter().find(|(branch, _)| self.holds(*branch));
        active.map(|(_, result)| *result)
    }

    /// Whether rules in `branch` are in force.
    #[must_use]
    pub fn holds(&self, branch: crate::policy::Branch) -> bool {
        self.condition(branch.condition) == branch.when
    }

    /// What rules on extended permissions say about one question.
    #[must_use]
    pub fn xperms(
        &self,
        policy: &Policy,
        source: TypeId,
        target: TypeId,
        class: ClassId,
    ) -> XpermSets {
        let active = |branch| self.holds(branch);
        self.tables.xperms.collect(policy, source, target, class, &active)
    }

    /// Bytes held by the tables, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tables.rows.bytes() + self.tables.groups.bytes() + self.values.len() * size_of::<Av>()
    }
}

type TypeTables =
    (HashMap<TypeKey, TypeId>, HashMap<TypeKey, Vec<(crate::policy::Branch, TypeId)>>);

fn type_tables(policy: &Policy) -> TypeTables {
    let mut always = HashMap::default();
    always.reserve(policy.type_rules.len());
    let mut conditional: HashMap<_, Vec<_>> = HashMap::default();
    for rule in &policy.type_rules {
        match rule.branch {
            None => {
                always.entry(rule.key).or_insert(rule.result);
            }
            Some(branch) => conditional.entry(rule.key).or_default().push((branch, rule.result)),
        }
    }
    (always, conditional)
}
