//! What a policy is built in.

use super::permissions::{ClassPerms, XpermSet};
use super::{
    Binding, Container, Containers, Failure, Item, Node, Scopes, Space, Spending, SymbolId, Tree,
    Word,
};
use crate::TypeId;
use crate::hash::HashMap;
use crate::policy::{Policy, SourceLine};

/// The policy so far, and what symbols have become in it.
pub(super) struct Builder<'a> {
    pub(super) tree: &'a Tree,
    pub(super) containers: &'a Containers,
    pub(super) scopes: &'a Scopes,
    pub(super) policy: Policy,
    /// For each symbol, its number in the policy's table of its space.
    pub(super) numbers: Vec<u32>,
    /// For each alias, what it stands for.
    pub(super) actual: HashMap<SymbolId, SymbolId>,
    /// Class permissions that a symbol stands for, by map permission for maps.
    pub(super) class_sets: HashMap<(SymbolId, Word), Vec<ClassPerms>>,
    /// Attributes made for a macro's unnamed arguments.
    pub(super) unnamed: HashMap<u32, TypeId>,
    pub(super) role_attributes: HashMap<SymbolId, crate::BitSet>,
    pub(super) user_attributes: HashMap<SymbolId, crate::BitSet>,
    pub(super) category_sets: HashMap<SymbolId, crate::BitSet>,
    pub(super) permissionx: HashMap<SymbolId, XpermSet>,
    pub(super) spending: &'a Spending,
}

/// The number of a symbol that has none.
pub(super) const NO_NUMBER: u32 = u32::MAX;

impl<'a> Builder<'a> {
    pub(super) fn new(
        tree: &'a Tree,
        containers: &'a Containers,
        scopes: &'a Scopes,
        spending: &'a Spending,
    ) -> Self {
        Self {
            tree,
            containers,
            scopes,
            policy: Policy::default(),
            numbers: vec![NO_NUMBER; scopes.symbols().count()],
            actual: HashMap::default(),
            class_sets: HashMap::default(),
            unnamed: HashMap::default(),
            role_attributes: HashMap::default(),
            user_attributes: HashMap::default(),
            category_sets: HashMap::default(),
            permissionx: HashMap::default(),
            spending,
        }
    }

    /// See [`Spending::spend`].
    pub(super) fn spend(&self, node: Node, count: usize) -> Result<(), Failure> {
        self.spending.spend(node, count)
    }

    /// See [`Spending::spend_bytes`].
    pub(super) fn spend_bytes(&self, node: Node, bytes: usize) -> Result<(), Failure> {
        self.spending.spend_bytes(node, bytes)
    }

    /// Each type is a set of itself, and each role dominates itself: of many, what the last of them
    /// takes is much.
    pub(super) fn spend_on_own_sets(&self) -> Result<(), Failure> {
        let own = |count: usize| count.saturating_mul(count / 128);
        let count = own(self.policy.types.len()) + own(self.policy.roles.len());
        self.spend(self.containers.get(Container::ROOT).node, count)
    }

    /// What the word at `node`, used in `at`, means.
    pub(super) fn find(&self, at: Container, space: Space, node: Node) -> Result<Binding, Failure> {
        let Item::Word(word) = node.item else {
            return Err(expected(node, space.noun()));
        };
        self.scopes
            .find(self.tree, self.containers, at, space, word)
            .ok_or(Failure::unknown(node, space, word))
    }

    /// The symbol that the word at `node` names; for an alias, what it stands for.
    pub(super) fn symbol(
        &self,
        at: Container,
        space: Space,
        node: Node,
    ) -> Result<SymbolId, Failure> {
        match self.find(at, space, node)? {
            Binding::Symbol(id) => Ok(self.actual.get(&id).copied().unwrap_or(id)),
            Binding::Unnamed(node, _) => Err(expected(node, space.noun())),
            Binding::Text(_) => Err(expected(node, space.noun())),
        }
    }

    /// The number, in the policy's table, of what the word at `node` names.
    pub(super) fn number(&self, at: Container, space: Space, node: Node) -> Result<u32, Failure> {
        let id = self.symbol(at, space, node)?;
        match self.numbers[id.0 as usize] {
            NO_NUMBER => Err(expected(node, space.noun())),
            number => Ok(number),
        }
    }

    pub(super) fn flavor(&self, id: SymbolId) -> Word {
        self.scopes.symbol(id).flavor
    }

    pub(super) fn place(&self, node: Node) -> Option<SourceLine> {
        self.tree.sources.place(node.offset)
    }

    pub(super) fn word(&self, node: Node) -> Result<Word, Failure> {
        match node.item {
            Item::Word(word) => Ok(word),
            _ => Err(expected(node, "name")),
        }
    }

    pub(super) fn text(&self, node: Node) -> Result<&'a str, Failure> {
        match node.item {
            Item::Word(word) | Item::Quoted(word) => Ok(self.tree.text(word)),
            Item::List { .. } => Err(expected(node, "text")),
        }
    }

    /// The text at `node`, or the one that a macro's parameter stands for.
    pub(super) fn text_or_param(&self, at: Container, node: Node) -> Result<&'a str, Failure> {
        let Item::Word(word) = node.item else { return self.text(node) };
        match self.scopes.find(self.tree, self.containers, at, Space::Text, word) {
            Some(Binding::Text(word)) => Ok(self.tree.text(word)),
            _ => Ok(self.tree.text(word)),
        }
    }

    pub(super) fn full_name(&self, id: SymbolId) -> &'a str {
        &self.scopes.symbol(id).full_name
    }
}

/// Something else stands where a thing of that kind is expected.
pub(super) fn expected(node: Node, noun: &str) -> Failure {
    Failure::wrong_owned(
        node,
        format!("expected the name of a {noun}"),
        format!("name a {noun} here"),
    )
}
