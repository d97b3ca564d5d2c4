//! Groups of types that have the same attributes.

use super::rows::{Row, Rows};
use crate::hash::HashMap;
use crate::policy::{Policy, TypeKind};
use crate::{BitSet, ClassId, TypeId};

/// The targets that a look-up wants: a type and those of its attributes that rules of the class
/// name.
#[derive(Debug)]
pub(super) struct Targets<'a> {
    pub(super) own: TypeId,
    pub(super) attributes: &'a [TypeId],
}

/// For each group of types and each class, what a look-up has to visit.
#[derive(Debug)]
pub(super) struct Groups {
    /// The group of each type.
    group: Vec<u32>,
    classes: usize,
    /// `rows[row_start[i]..row_start[i + 1]]` belong to cell i = group * classes + class.
    row_start: Vec<u32>,
    rows: Vec<Row>,
    /// The same for targets.
    target_start: Vec<u32>,
    targets: Vec<TypeId>,
}

impl Groups {
    pub(super) fn new(policy: &Policy, rows: &Rows) -> Self {
        let (group, sets) = group_types(policy);
        let classes = policy.classes.len();
        let by_attribute = rows_by_attribute(policy, rows);
        let named = targets_by_class(policy, rows);
        let mut out = Self {
            group,
            classes,
            row_start: Vec::with_capacity(sets.len() * classes + 1),
            rows: Vec::new(),
            target_start: Vec::with_capacity(sets.len() * classes + 1),
            targets: Vec::new(),
        };
        let mut cells: Vec<Vec<Row>> = vec![Vec::new(); classes];
        for attributes in &sets {
            for attribute in attributes {
                for (class, row) in by_attribute.get(attribute).into_iter().flatten() {
                    cells[class.index()].push(*row);
                }
            }
            for (class, cell) in cells.iter_mut().enumerate() {
                out.row_start.push(out.rows.len() as u32);
                out.rows.append(cell);
                out.target_start.push(out.targets.len() as u32);
                let used = attributes.iter().filter(|a| named[class].contains(a.index()));
                out.targets.extend(used);
            }
        }
        out.row_start.push(out.rows.len() as u32);
        out.target_start.push(out.targets.len() as u32);
        out
    }

    fn cell(&self, type_: TypeId, class: ClassId) -> Option<usize> {
        let group = *self.group.get(type_.index())?;
        (class.index() < self.classes).then(|| group as usize * self.classes + class.index())
    }

    /// The rows of the source's attributes for that class.
    #[inline]
    pub(super) fn rows(&self, source: TypeId, class: ClassId) -> &[Row] {
        let cell = self.cell(source, class);
        cell.map_or(&[], |c| &self.rows[span(&self.row_start, c)])
    }

    /// The target's attributes that rules of that class name as a target.
    #[inline]
    pub(super) fn targets(&self, target: TypeId, class: ClassId) -> &[TypeId] {
        let cell = self.cell(target, class);
        cell.map_or(&[], |c| &self.targets[span(&self.target_start, c)])
    }

    pub(super) fn bytes(&self) -> usize {
        (self.group.len() + self.row_start.len() + self.target_start.len()) * size_of::<u32>()
            + self.rows.len() * size_of::<Row>()
            + self.targets.len() * size_of::<TypeId>()
    }
}

fn span(starts: &[u32], cell: usize) -> std::ops::Range<usize> {
    starts[cell] as usize..starts[cell + 1] as usize
}

/// The group of each type, and the attributes of each group.
fn group_types(policy: &Policy) -> (Vec<u32>, Vec<Vec<TypeId>>) {
    let mut numbers: HashMap<Vec<TypeId>, u32> = HashMap::default();
    let mut sets = Vec::new();
    let mut group = Vec::with_capacity(policy.types.len());
    for (index, entry) in policy.types.values().enumerate() {
        let own = TypeId::at(index);
        let attributes: Vec<TypeId> = match entry.kind {
            TypeKind::Type => entry.attributes.iter().copied().filter(|a| *a != own).collect(),
            _ => Vec::new(),
        };
        let number = *numbers.entry(attributes).or_insert_with_key(|attributes| {
            sets.push(attributes.clone());
            sets.len() as u32 - 1
        });
        group.push(number);
    }
    (group, sets)
}

fn is_attribute(policy: &Policy, id: TypeId) -> bool {
    policy.types.get_index(id.index()).is_some_and(|t| t.1.kind == TypeKind::Attribute)
}

fn rows_by_attribute(policy: &Policy, rows: &Rows) -> HashMap<TypeId, Vec<(ClassId, Row)>> {
    let mut by_attribute: HashMap<TypeId, Vec<(ClassId, Row)>> = HashMap::default();
    for (source, class, row, _) in rows.iter().filter(|row| is_attribute(policy, row.0)) {
        if class.index() < policy.classes.len() {
            by_attribute.entry(source).or_default().push((class, row));
        }
    }
    by_attribute
}

/// For each class, the attributes that its rules name as a target.
fn targets_by_class(policy: &Policy, rows: &Rows) -> Vec<BitSet> {
    let mut named = vec![BitSet::new(); policy.classes.len()];
    for (_, class, _, targets) in rows.iter() {
        if let Some(named) = named.get_mut(class.index()) {
            targets.iter().for_each(|target| named.insert(target.index()));
        }
    }
    named
}
