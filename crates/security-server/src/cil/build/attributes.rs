//! Sets of types, roles and users that have a name.

use super::builder::NO_NUMBER;
use super::statements::{LiveStatement, Statements};
use super::{Binding, Builder, Container, Failure, Node, Report, Space, SymbolId, Word, kw};
use crate::cil::sets::{Sets, set};
use crate::hash::HashMap;
use crate::policy::{Type, TypeKind};
use crate::{BitSet, TypeId};

/// Attributes that contain one another in longer chains are refused.
const MAX_DEPTH: u32 = 100;

/// The statements that give each attribute its members.
type Definitions = HashMap<SymbolId, Vec<LiveStatement>>;

impl Builder<'_> {
    /// Finds the members of all attributes.
    pub(super) fn attributes(&mut self, statements: &Statements, report: &mut Report) {
        for entry in self.policy.types.values_mut().enumerate() {
            if entry.1.kind == TypeKind::Type {
                entry.1.members = [entry.0].into_iter().collect();
            }
        }
        for (space, keyword) in [
            (Space::Type, kw::TYPEATTRIBUTESET),
            (Space::Role, kw::ROLEATTRIBUTESET),
            (Space::User, kw::USERATTRIBUTESET),
        ] {
            let definitions = self.definitions(space, statements.of(keyword), report);
            let mut members =
                Members { builder: self, space, definitions, done: HashMap::default() };
            let ids: Vec<SymbolId> = members.definitions.keys().copied().collect();
            for id in ids {
                members.of(id, 0, report);
            }
            let done = members.done;
            self.keep_members(space, done);
        }
    }

    fn definitions(
        &self,
        space: Space,
        statements: &[LiveStatement],
        report: &mut Report,
    ) -> Definitions {
        let mut definitions = Definitions::default();
        for s in statements {
            match self.attribute_of(space, s) {
                Ok(id) => definitions.entry(id).or_default().push(*s),
                Err(failure) => report.fail(self.containers, s.at, failure),
            }
        }
        definitions
    }

    fn attribute_of(&self, space: Space, s: &LiveStatement) -> Result<SymbolId, Failure> {
        let [name, _] = self.args(s)?;
        let id = self.symbol(s.at, space, name)?;
        if is_attribute(self.flavor(id)) {
            return Ok(id);
        }
        let message = format!("`{}` is not an attribute", self.full_name(id));
        Err(Failure::wrong(name, message, "declare it as an attribute"))
    }

    fn keep_members(&mut self, space: Space, done: HashMap<SymbolId, Option<BitSet>>) {
        for (id, members) in done {
            let members = members.unwrap_or_default();
            match space {
                Space::Type => {
                    let number = self.numbers[id.0 as usize] as usize;
                    if let Some((_, entry)) = self.policy.types.get_index_mut(number) {
                        entry.members = members;
                    }
                }
                Space::Role => drop(self.role_attributes.insert(id, members)),
                _ => drop(self.user_attributes.insert(id, members)),
            }
        }
    }

    /// The members of the thing at `node`: of an attribute all, of anything else itself.
    pub(super) fn members(
        &mut self,
        at: Container,
        space: Space,
        node: Node,
    ) -> Result<BitSet, Failure> {
        let id = match self.find(at, space, node)? {
            Binding::Symbol(_) => self.symbol(at, space, node)?,
            Binding::Unnamed(node, at) => return self.member_expression(at, space, node),
            Binding::Text(_) => return Err(super::expected(node, space.noun())),
        };
        Ok(self.members_of(space, id))
    }

    fn members_of(&self, space: Space, id: SymbolId) -> BitSet {
        let number = self.numbers[id.0 as usize];
        match (space, number) {
            (Space::Type, NO_NUMBER) => BitSet::new(),
            (Space::Type, _) => self.policy.types[number as usize].members.clone(),
            (Space::Role, NO_NUMBER) => self.role_attributes.get(&id).cloned().unwrap_or_default(),
            (_, NO_NUMBER) => self.user_attributes.get(&id).cloned().unwrap_or_default(),
            _ => [number as usize].into_iter().collect(),
        }
    }

    /// The members that an expression over names stands for.
    pub(super) fn member_expression(
        &mut self,
        at: Container,
        space: Space,
        node: Node,
    ) -> Result<BitSet, Failure> {
        let members = set(self.tree, node, &mut Known { builder: self, at, space })?;
        self.spend(node, members.words())?;
        Ok(members)
    }

    /// The type or attribute that the word at `node` names; an unnamed argument becomes an
    /// attribute.
    pub(super) fn type_id(&mut self, at: Container, node: Node) -> Result<TypeId, Failure> {
        match self.find(at, Space::Type, node)? {
            Binding::Unnamed(node, at) => {
                if let Some(known) = self.unnamed.get(&node.offset) {
                    return Ok(*known);
                }
                let members = self.member_expression(at, Space::Type, node)?;
                self.spend(node, members.len())?;
                let name = format!("@{}", self.policy.types.len());
                let entry = Type { members, ..Type::new(TypeKind::Attribute) };
                let id = TypeId::at(self.policy.types.insert_full(name.into(), entry).0);
                self.unnamed.insert(node.offset, id);
                Ok(id)
            }
            _ => self.number(at, Space::Type, node).map(TypeId),
        }
    }

    /// The type, not an attribute, that the word at `node` names.
    pub(super) fn single_type(&mut self, at: Container, node: Node) -> Result<TypeId, Failure> {
        let id = self.type_id(at, node)?;
        if self.policy.types[id.index()].kind == TypeKind::Type {
            return Ok(id);
        }
        let message = format!("`{}` is an attribute", self.policy.type_name(id));
        Err(Failure::wrong(node, message, "name one type here"))
    }

    fn universe(&self, space: Space) -> BitSet {
        match space {
            Space::Type => {
                let types = self.policy.types.values().enumerate();
                types.filter(|(_, entry)| entry.kind == TypeKind::Type).map(|(n, _)| n).collect()
            }
            Space::Role => BitSet::below(self.policy.roles.len()),
            _ => BitSet::below(self.policy.users.len()),
        }
    }
}

fn is_attribute(flavor: Word) -> bool {
    matches!(flavor, kw::TYPEATTRIBUTE | kw::ROLEATTRIBUTE | kw::USERATTRIBUTE)
}

/// Names whose members are all known, for expressions over them.
struct Known<'a, 'b> {
    builder: &'a mut Builder<'b>,
    at: Container,
    space: Space,
}

impl Sets for Known<'_, '_> {
    fn all(&self) -> BitSet {
        self.builder.universe(self.space)
    }

    fn named(&mut self, node: Node, _word: Word) -> Result<BitSet, Failure> {
        self.builder.members(self.at, self.space, node)
    }
}

/// Finds the members of attributes that may contain one another.
struct Members<'a, 'b> {
    builder: &'a Builder<'b>,
    space: Space,
    definitions: Definitions,
    /// The members found; `None` while they are being looked for.
    done: HashMap<SymbolId, Option<BitSet>>,
}

impl Members<'_, '_> {
    fn of(&mut self, id: SymbolId, depth: u32, report: &mut Report) -> BitSet {
        let definitions = self.definitions.get(&id).cloned().unwrap_or_default();
        match self.done.get(&id) {
            Some(Some(members)) => return members.clone(),
            Some(None) => {
                if let Some(first) = definitions.first() {
                    report.add(cycle(first.node, "attributes contain one another"));
                }
                return BitSet::new();
            }
            None => {}
        }
        if depth > MAX_DEPTH {
            if let Some(first) = definitions.first() {
                report.add(cycle(first.node, "attributes are nested deeper than 100 levels"));
            }
            return BitSet::new();
        }
        self.done.insert(id, None);
        let mut members = BitSet::new();
        // Whatever follows, the policy is refused.
        let definitions =
            if self.builder.spending.is_exhausted() { Vec::new() } else { definitions };
        for s in &definitions {
            let Some(expression) = self.builder.tree.list(s.node).get(2).copied() else { continue };
            let tree = self.builder.tree;
            let mut names = Unknown { members: self, at: s.at, depth, report };
            match set(tree, expression, &mut names) {
                Ok(value) => members.union_with(&value),
                Err(failure) => report.fail(self.builder.containers, s.at, failure),
            }
        }
        let spent = definitions
            .first()
            .map(|s| self.builder.spend(s.node, members.len().max(members.words())));
        if let Some(Err(failure)) = spent {
            report.add(failure);
            members = BitSet::new();
        }
        self.done.insert(id, Some(members.clone()));
        members
    }
}

fn cycle(node: Node, message: &str) -> Failure {
    Failure::wrong(node, message.to_owned(), "break the cycle of attribute sets")
}

/// Names whose members may still have to be found.
struct Unknown<'a, 'b, 'c> {
    members: &'a mut Members<'b, 'c>,
    at: Container,
    depth: u32,
    report: &'a mut Report,
}

impl Sets for Unknown<'_, '_, '_> {
    fn all(&self) -> BitSet {
        self.members.builder.universe(self.members.space)
    }

    fn named(&mut self, node: Node, _word: Word) -> Result<BitSet, Failure> {
        let (builder, space) = (self.members.builder, self.members.space);
        match builder.find(self.at, space, node)? {
            Binding::Symbol(_) => {
                let id = builder.symbol(self.at, space, node)?;
                if is_attribute(builder.flavor(id)) {
                    return Ok(self.members.of(id, self.depth + 1, self.report));
                }
                Ok(builder.members_of(space, id))
            }
            Binding::Unnamed(node, at) => {
                let outer = std::mem::replace(&mut self.at, at);
                let value = set(builder.tree, node, self);
                self.at = outer;
                value
            }
            Binding::Text(_) => Err(super::expected(node, space.noun())),
        }
    }
}
