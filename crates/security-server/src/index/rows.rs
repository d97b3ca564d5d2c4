//! Access vector rules, merged and laid out by (source, class).

use super::groups::Targets;
use crate::hash::HashMap;
use crate::policy::{AvKind, AvRule, Branch};
use crate::{ClassId, TypeId};
use std::{ops::Range, sync::Arc};

/// The sum of access vector rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Av {
    /// Granted.
    pub allow: u32,
    /// Recorded when granted.
    pub auditallow: u32,
    /// Not recorded when denied.
    pub dontaudit: u32,
}

impl Av {
    fn add(&mut self, kind: AvKind, perms: u32) {
        match kind {
            AvKind::Allow => self.allow |= perms,
            AvKind::AuditAllow => self.auditallow |= perms,
            AvKind::DontAudit => self.dontaudit |= perms,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.allow |= other.allow;
        self.auditallow |= other.auditallow;
        self.dontaudit |= other.dontaudit;
    }
}

/// The rules of one (source, class).
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// One bit for each target, by the target's number modulo 128.
    signature: u128,
    start: u32,
    len: u32,
}

impl Row {
    fn entries(self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// Adds to the value of an entry when a branch is in force.
#[derive(Clone, Copy, Debug)]
struct Conditional {
    entry: u32,
    branch: Branch,
    kind: AvKind,
    perms: u32,
}

/// All rows of a policy.
#[derive(Debug)]
pub(super) struct Rows {
    rows: Vec<Row>,
    by_key: HashMap<(TypeId, ClassId), u32>,
    keys: Vec<(TypeId, ClassId)>,
    targets: Vec<TypeId>,
    base: Vec<Av>,
    conditional: Vec<Conditional>,
}

fn signature_bit(target: TypeId) -> u128 {
    1 << (target.0 % 128)
}

impl Rows {
    /// Lays out `rules`. Rules of the same source, target and class become one entry.
    pub(super) fn new(rules: &[AvRule]) -> Self {
        let mut order: Vec<_> = rules.iter().zip(0..).map(|(rule, n)| (key(rule), n)).collect();
        order.sort_unstable();
        let mut out = Self {
            rows: Vec::new(),
            by_key: HashMap::default(),
            keys: Vec::new(),
            targets: Vec::with_capacity(rules.len()),
            base: Vec::with_capacity(rules.len()),
            conditional: Vec::new(),
        };
        let mut last = None;
        for (key, rule) in order {
            let rule = &rules[rule as usize];
            if last != Some(key) {
                out.start_entry(rule);
            }
            last = Some(key);
            out.add(rule);
        }
        out.targets.shrink_to_fit();
        out.base.shrink_to_fit();
        out
    }

    fn start_entry(&mut self, rule: &AvRule) {
        let row_key = (rule.source, rule.class);
        if self.keys.last() != Some(&row_key) {
            self.by_key.insert(row_key, self.rows.len() as u32);
            self.keys.push(row_key);
            self.rows.push(Row { signature: 0, start: self.targets.len() as u32, len: 0 });
        }
        if let Some(row) = self.rows.last_mut() {
            row.len += 1;
            row.signature |= signature_bit(rule.target);
        }
        self.targets.push(rule.target);
        self.base.push(Av::default());
    }

    fn add(&mut self, rule: &AvRule) {
        let entry = self.base.len() as u32 - 1;
        match (rule.branch, self.base.last_mut()) {
            (Some(branch), _) => self.conditional.push(Conditional {
                entry,
                branch,
                kind: rule.kind,
                perms: rule.perms,
            }),
            (None, Some(value)) => value.add(rule.kind, rule.perms),
            (None, None) => {}
        }
    }

    /// The value of each entry when the conditions have these values.
    pub(super) fn values(&self, conditions: &[bool]) -> Arc<[Av]> {
        let mut values: Arc<[Av]> = self.base.as_slice().into();
        if let Some(values) = Arc::get_mut(&mut values) {
            for rule in &self.conditional {
                let holds = conditions.get(rule.branch.condition.index()).copied();
                if holds == Some(rule.branch.when) {
                    values[rule.entry as usize].add(rule.kind, rule.perms);
                }
            }
        }
        values
    }

    /// The row of a source and a class.
    #[inline]
    pub(super) fn find(&self, source: TypeId, class: ClassId) -> Option<Row> {
        self.by_key.get(&(source, class)).map(|row| self.rows[*row as usize])
    }

    /// Adds the values of the row's entries for the wanted targets.
    #[inline]
    pub(super) fn collect(&self, row: Row, wanted: &Targets<'_>, values: &[Av], av: &mut Av) {
        if row.signature & signature_bit(wanted.own) != 0 {
            self.add_entry(row, wanted.own, values, av);
        }
        for target in wanted.attributes {
            if row.signature & signature_bit(*target) != 0 {
                self.add_entry(row, *target, values, av);
            }
        }
    }

    #[inline]
    fn add_entry(&self, row: Row, target: TypeId, values: &[Av], av: &mut Av) {
        let entries = row.entries();
        if let Ok(found) = self.targets[entries.clone()].binary_search(&target) {
            av.merge(&values[entries.start + found]);
        }
    }

    /// Every row with its source, class and targets.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TypeId, ClassId, Row, &[TypeId])> {
        self.keys
            .iter()
            .zip(&self.rows)
            .map(|((source, class), row)| (*source, *class, *row, &self.targets[row.entries()]))
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.len() * size_of::<Row>()
            + self.by_key.capacity() * size_of::<((TypeId, ClassId), u32)>()
            + self.keys.len() * size_of::<(TypeId, ClassId)>()
            + self.targets.len() * size_of::<TypeId>()
            + self.base.len() * size_of::<Av>()
            + self.conditional.len() * size_of::<Conditional>()
    }
}

/// Sorts by source, class, target.
fn key(rule: &AvRule) -> (u64, u32) {
    (u64::from(rule.source.0) << 32 | u64::from(rule.class.0), rule.target.0)
}
