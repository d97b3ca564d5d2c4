//! Sensitivities, categories, levels and ranges; and aliases of all kinds.

use super::statements::{LiveStatement, Statements};
use super::{Binding, Builder, Container, Failure, Item, Node, Report, Space, SymbolId, Word, kw};
use crate::cil::sets::{Sets, set};
use crate::hash::HashMap;
use crate::policy::{Level, Range};
use crate::{BitSet, SensId, TypeId};

/// Names that stand for one another in longer chains are refused.
const MAX_CHAIN: usize = 64;

impl Builder<'_> {
    /// Finds what aliases stand for.
    pub(super) fn aliases(&mut self, statements: &Statements, report: &mut Report) {
        let mut direct: HashMap<SymbolId, (SymbolId, Node)> = HashMap::default();
        for (keyword, space) in [
            (kw::TYPEALIASACTUAL, Space::Type),
            (kw::SENSITIVITYALIASACTUAL, Space::Sensitivity),
            (kw::CATEGORYALIASACTUAL, Space::Category),
        ] {
            for s in statements.of(keyword) {
                match self.alias(s, space) {
                    Ok((alias, actual)) => drop(direct.insert(alias, (actual, s.node))),
                    Err(failure) => report.fail(self.containers, s.at, failure),
                }
            }
        }
        for alias in direct.keys() {
            let mut chain = std::iter::successors(Some(*alias), |id| direct.get(id).map(|a| a.0));
            match chain.by_ref().take(MAX_CHAIN).find(|id| !direct.contains_key(id)) {
                Some(actual) => drop(self.actual.insert(*alias, actual)),
                None => {
                    let message = "aliases stand for one another".to_owned();
                    report.add(Failure::wrong(direct[alias].1, message, "break the cycle"));
                }
            }
        }
    }

    fn alias(&self, s: &LiveStatement, space: Space) -> Result<(SymbolId, SymbolId), Failure> {
        let [alias, actual] = self.args(s)?;
        let id = self.symbol(s.at, space, alias)?;
        let is_alias =
            matches!(self.flavor(id), kw::TYPEALIAS | kw::SENSITIVITYALIAS | kw::CATEGORYALIAS);
        if !is_alias {
            let message = format!("`{}` is not declared as an alias", self.full_name(id));
            return Err(Failure::wrong(alias, message, "declare it with `typealias` or its kin"));
        }
        Ok((id, self.symbol(s.at, space, actual)?))
    }

    /// Enters the aliases' names into the policy's tables, once what they stand for has a number.
    pub(super) fn name_aliases(&mut self) {
        for (alias, actual) in &self.actual {
            let name: Box<str> = self.full_name(*alias).into();
            let number = self.numbers[actual.0 as usize];
            match self.scopes.symbol(*alias).space {
                Space::Type => drop(self.policy.type_aliases.insert(name, TypeId(number))),
                Space::Sensitivity => {
                    self.policy.sensitivity_aliases.insert(name, SensId(number));
                }
                _ => drop(self.policy.category_aliases.insert(name, number)),
            }
        }
    }

    /// Reads whether the policy is multi-level, and which sensitivity may have which categories.
    pub(super) fn levels(&mut self, statements: &Statements, report: &mut Report) {
        self.each(statements, &[kw::MLS], report, Self::mls);
        self.each(statements, &[kw::CATEGORYSET], report, Self::category_set);
        self.each(statements, &[kw::SENSITIVITYCATEGORY], report, Self::sensitivity_category);
        self.each(statements, &[kw::LEVEL, kw::LEVELRANGE], report, Self::named_level);
    }

    fn mls(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [value] = self.args(s)?;
        self.policy.mls = match value.item {
            Item::Word(kw::TRUE) => true,
            Item::Word(kw::FALSE) => false,
            _ => return Err(self.misuse(s)),
        };
        Ok(())
    }

    fn category_set(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [name, _] = self.args(s)?;
        let id = self.symbol(s.at, Space::Category, name)?;
        self.named_set(id, 0).map(drop)
    }

    /// The categories of a `categoryset`; sets may name others.
    fn named_set(&mut self, id: SymbolId, depth: usize) -> Result<BitSet, Failure> {
        if let Some(known) = self.category_sets.get(&id) {
            return Ok(known.clone());
        }
        let symbol = self.scopes.symbol(id);
        let [_, _, expression] = self.tree.list(symbol.node) else {
            let message = "this is not the form of `categoryset`".to_owned();
            return Err(Failure::wrong(symbol.node, message, "write `(categoryset name (c0 c1))`"));
        };
        if depth > MAX_CHAIN {
            let message = "category sets contain one another".to_owned();
            return Err(Failure::wrong(symbol.node, message, "break the cycle"));
        }
        let mut sets = Categories { at: symbol.container, depth, builder: self };
        let value = set(sets.builder.tree, *expression, &mut sets)?;
        self.spend(*expression, value.words())?;
        self.category_sets.insert(id, value.clone());
        Ok(value)
    }

    fn sensitivity_category(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [sensitivity, categories] = self.args(s)?;
        let sensitivity = self.number(s.at, Space::Sensitivity, sensitivity)?;
        let value = self.categories(s.at, categories)?;
        if let Some((_, allowed)) = self.policy.sensitivities.get_index_mut(sensitivity as usize) {
            allowed.union_with(&value);
        }
        Ok(())
    }

    /// The categories that the expression at `node` stands for.
    fn categories(&mut self, at: Container, node: Node) -> Result<BitSet, Failure> {
        let mut sets = Categories { at, depth: 0, builder: self };
        let categories = set(sets.builder.tree, node, &mut sets)?;
        self.spend(node, categories.words())?;
        Ok(categories)
    }

    fn named_level(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [_, value] = self.args(s)?;
        if self.tree.list(s.node).first().is_some_and(|k| matches!(k.item, Item::Word(kw::LEVEL))) {
            self.level(s.at, value).map(drop)
        } else {
            self.range(s.at, value).map(drop)
        }
    }

    /// The level that a name or `(sensitivity [categories])` stands for.
    pub(super) fn level(&mut self, at: Container, node: Node) -> Result<Level, Failure> {
        if let Item::Word(_) = node.item {
            return match self.find(at, Space::Level, node)? {
                Binding::Symbol(id) => {
                    let symbol = self.scopes.symbol(id);
                    let value = self.tree.list(symbol.node).get(2).copied();
                    match value {
                        Some(value @ Node { item: Item::List { .. }, .. }) => {
                            self.level(symbol.container, value)
                        }
                        _ => Err(super::expected(symbol.node, "level")),
                    }
                }
                Binding::Unnamed(node, at) => self.level(at, node),
                Binding::Text(_) => Err(super::expected(node, "level")),
            };
        }
        let (sensitivity, categories) = match self.tree.list(node) {
            [sensitivity] => (*sensitivity, None),
            [sensitivity, categories] => (*sensitivity, Some(*categories)),
            _ => {
                let message = "this is not a level".to_owned();
                return Err(Failure::wrong(node, message, "write `(sensitivity (category …))`"));
            }
        };
        let sens = SensId(self.number(at, Space::Sensitivity, sensitivity)?);
        let cats = match categories {
            Some(categories) => self.categories(at, categories)?,
            None => BitSet::new(),
        };
        let allowed = self.policy.sensitivities.get_index(sens.index());
        if allowed.is_none_or(|(_, allowed)| !allowed.contains_all(&cats)) {
            let message = "the sensitivity may not have these categories".to_owned();
            return Err(Failure::wrong(node, message, "add them with `sensitivitycategory`"));
        }
        Ok(Level { sens, cats })
    }

    /// The range that a name or `(low high)` stands for.
    pub(super) fn range(&mut self, at: Container, node: Node) -> Result<Range, Failure> {
        if let Item::Word(_) = node.item {
            return match self.find(at, Space::LevelRange, node)? {
                Binding::Symbol(id) => {
                    let symbol = self.scopes.symbol(id);
                    let value = self.tree.list(symbol.node).get(2).copied();
                    match value {
                        Some(value @ Node { item: Item::List { .. }, .. }) => {
                            self.range(symbol.container, value)
                        }
                        _ => Err(super::expected(symbol.node, "level range")),
                    }
                }
                Binding::Unnamed(node, at) => self.range(at, node),
                Binding::Text(_) => Err(super::expected(node, "level range")),
            };
        }
        let [low, high] = *self.tree.list(node) else {
            let message = "this is not a range".to_owned();
            return Err(Failure::wrong(node, message, "write `(low high)`, two levels"));
        };
        let range = Range { low: self.level(at, low)?, high: self.level(at, high)? };
        if range.high.dominates(&range.low) {
            return Ok(range);
        }
        let message = "the high level does not dominate the low one".to_owned();
        Err(Failure::wrong(node, message, "exchange the levels, or add categories to the high one"))
    }
}

/// The categories, for expressions over them.
struct Categories<'a, 'b> {
    builder: &'a mut Builder<'b>,
    at: Container,
    depth: usize,
}

impl Sets for Categories<'_, '_> {
    fn all(&self) -> BitSet {
        BitSet::below(self.builder.policy.categories.len())
    }

    fn named(&mut self, node: Node, _word: Word) -> Result<BitSet, Failure> {
        match self.builder.find(self.at, Space::Category, node)? {
            Binding::Unnamed(node, at) => self.builder.categories(at, node),
            Binding::Text(_) => Err(super::expected(node, "category")),
            Binding::Symbol(id) if self.builder.flavor(id) == kw::CATEGORYSET => {
                self.builder.named_set(id, self.depth + 1)
            }
            Binding::Symbol(_) => {
                let number = self.builder.number(self.at, Space::Category, node)?;
                Ok([number as usize].into_iter().collect())
            }
        }
    }

    fn range(&mut self, node: Node, first: Node, last: Node) -> Result<BitSet, Failure> {
        let first = self.builder.number(self.at, Space::Category, first)?;
        let last = self.builder.number(self.at, Space::Category, last)?;
        if first > last {
            let message = "the first category comes after the last".to_owned();
            return Err(Failure::wrong(node, message, "exchange them"));
        }
        Ok((first as usize..=last as usize).collect())
    }
}
