//! The tables of the policy: everything declared, in its order.

use super::statements::{LiveStatement, Statements};
use super::{Builder, Failure, Item, Node, Report, Space, SymbolId, Word, kw};
use crate::hash::HashMap;
use crate::policy::{Class, Role, Type, TypeKind, User};

impl Builder<'_> {
    /// Fills the tables whose order has no meaning.
    pub(super) fn declare(&mut self) {
        self.policy.roles.insert("object_r".into(), Role::default());
        let scopes = self.scopes;
        for (id, symbol) in scopes.symbols() {
            self.declare_one(id, symbol.space, symbol.flavor);
        }
    }

    /// Fills the tables whose order the policy gives.
    pub(super) fn declare_in_order(&mut self, statements: &Statements, report: &mut Report) {
        let symbols: Vec<(SymbolId, Space, Word)> =
            self.scopes.symbols().map(|(id, symbol)| (id, symbol.space, symbol.flavor)).collect();
        for (space, flavor, order) in [
            (Space::Class, kw::CLASS, kw::CLASSORDER),
            (Space::Sid, kw::SID, kw::SIDORDER),
            (Space::Sensitivity, kw::SENSITIVITY, kw::SENSITIVITYORDER),
            (Space::Category, kw::CATEGORY, kw::CATEGORYORDER),
        ] {
            let declared = symbols.iter().filter(|s| s.1 == space && s.2 == flavor).map(|s| s.0);
            let ordered = self.ordered(space, statements.of(order), declared.collect(), report);
            for id in ordered {
                self.declare_ordered(id, space);
            }
        }
    }

    fn declare_one(&mut self, id: SymbolId, space: Space, flavor: Word) {
        let name: Box<str> = self.full_name(id).into();
        let index = match (space, flavor) {
            (Space::Type, kw::TYPE) => {
                self.policy.types.insert_full(name, Type::new(TypeKind::Type)).0
            }
            (Space::Type, kw::TYPEATTRIBUTE) => {
                self.policy.types.insert_full(name, Type::new(TypeKind::Attribute)).0
            }
            (Space::Role, kw::ROLE) => self.policy.roles.insert_full(name, Role::default()).0,
            (Space::User, kw::USER) => self.policy.users.insert_full(name, User::default()).0,
            (Space::Boolean, _) => {
                let state = self.tree.list(self.scopes.symbol(id).node).get(2);
                let state = state.is_some_and(|s| matches!(s.item, Item::Word(kw::TRUE)));
                self.policy.booleans.insert_full(name, state).0
            }
            _ => return,
        };
        self.numbers[id.0 as usize] = index as u32;
    }

    fn declare_ordered(&mut self, id: SymbolId, space: Space) {
        let name: Box<str> = self.full_name(id).into();
        let index = match space {
            Space::Class => self.policy.classes.insert_full(name, Class::default()).0,
            Space::Sid => self.policy.initial_sids.insert_full(name, None).0,
            Space::Sensitivity => {
                self.policy.sensitivities.insert_full(name, crate::BitSet::new()).0
            }
            _ => self.policy.categories.insert_full(name, ()).0,
        };
        self.numbers[id.0 as usize] = index as u32;
    }

    /// The declared symbols in the order that all order statements together give. Those of no order
    /// statement come last; sensitivities and categories must be in one, since their order has a
    /// meaning.
    fn ordered(
        &self,
        space: Space,
        orders: &[LiveStatement],
        declared: Vec<SymbolId>,
        report: &mut Report,
    ) -> Vec<SymbolId> {
        let mut lists = Vec::new();
        for s in orders {
            match self.order_list(s, space) {
                Ok(list) => lists.push((s.node, list)),
                Err(failure) => report.fail(self.containers, s.at, failure),
            }
        }
        let mut merged = match merge(&lists) {
            Ok(merged) => merged,
            Err(node) => {
                let message = "this order contradicts another one".to_owned();
                report.add(Failure::wrong(node, message, "make both agree"));
                return declared;
            }
        };
        for id in declared {
            if merged.contains(&id) {
                continue;
            }
            if matches!(space, Space::Sensitivity | Space::Category) {
                let name = self.full_name(id);
                let noun = space.noun();
                let message = format!("{noun} `{name}` is in no `{noun}order`");
                let help = format!("add it to a `{noun}order`");
                report.add(Failure::wrong_owned(self.scopes.symbol(id).node, message, help));
            }
            merged.push(id);
        }
        merged
    }

    fn order_list(&self, s: &LiveStatement, space: Space) -> Result<Vec<SymbolId>, Failure> {
        let [list] = self.args(s)?;
        let names = self.tree.list(list);
        if let [Node { item: Item::Word(kw::UNORDERED), .. }, names @ ..] = names {
            names.iter().try_for_each(|name| self.symbol(s.at, space, *name).map(drop))?;
            return Ok(Vec::new());
        }
        names.iter().map(|name| self.symbol(s.at, space, *name)).collect()
    }
}

/// One order that keeps the order of every list, or the list that contradicts those before it.
fn merge(lists: &[(Node, Vec<SymbolId>)]) -> Result<Vec<SymbolId>, Node> {
    let mut after: HashMap<SymbolId, Vec<SymbolId>> = HashMap::default();
    let mut waiting: HashMap<SymbolId, usize> = HashMap::default();
    let mut all = Vec::new();
    for (_, list) in lists {
        for id in list {
            if !waiting.contains_key(id) {
                waiting.insert(*id, 0);
                all.push(*id);
            }
        }
        for pair in list.windows(2) {
            after.entry(pair[0]).or_default().push(pair[1]);
            *waiting.entry(pair[1]).or_default() += 1;
        }
    }
    let mut ready: std::collections::VecDeque<SymbolId> =
        all.iter().copied().filter(|id| waiting[id] == 0).collect();
    let mut merged = Vec::with_capacity(all.len());
    while let Some(id) = ready.pop_front() {
        merged.push(id);
        for next in after.remove(&id).unwrap_or_default() {
            if let Some(count) = waiting.get_mut(&next) {
                *count -= 1;
                if *count == 0 {
                    ready.push_back(next);
                }
            }
        }
    }
    match lists.last() {
        Some((node, _)) if merged.len() < all.len() => Err(*node),
        _ => Ok(merged),
    }
}
