//! Builds the policy database from statements in force.

mod attributes;
mod classes;
mod constraints;
mod contexts;
mod declare;
mod labels;
mod mls;
mod roles;
mod rules;
mod statements;
mod types;
mod xperms;

use super::containers::{Container, Containers};
use super::scopes::{Binding, Scopes, SymbolId};
use super::space::Space;
use super::tree::{Item, Node, Tree};
use super::words::{Word, kw};
use super::{Failure, Report};
use crate::TypeId;
use crate::hash::HashMap;
use crate::policy::{Branch, Policy, SourceLine};
use classes::ClassPerms;
use statements::{LiveStatement, Statements};
use std::cell::Cell;

/// The policy that the live statements spell. What is wrong goes to `report`.
pub(super) fn build(
    tree: &Tree,
    containers: &Containers,
    scopes: &Scopes,
    live: &[Container],
    report: &mut Report,
) -> Policy {
    let mut builder = Builder::new(tree, containers, scopes);
    builder.policy.sources = tree.sources.names();
    builder.declare();
    if let Err(failure) = builder.spend_on_own_sets() {
        report.add(failure);
        return builder.policy;
    }
    let statements = Statements::new(&mut builder, live, report);
    builder.aliases(&statements, report);
    builder.declare_in_order(&statements, report);
    builder.name_aliases();
    builder.classes(&statements, report);
    builder.levels(&statements, report);
    builder.attributes(&statements, report);
    builder.roles_and_users(&statements, report);
    builder.type_statements(&statements, report);
    builder.rules(&statements, report);
    builder.constraints(&statements, report);
    builder.labels(&statements, report);
    if builder.policy.is_too_large() {
        let node = containers.get(Container::ROOT).node;
        let message = "there are too many types and classes together".to_owned();
        report.add(Failure::wrong(node, message, "split the policy"));
    }
    builder.policy
}

/// The policy so far, and what symbols have become in it.
struct Builder<'a> {
    tree: &'a Tree,
    containers: &'a Containers,
    scopes: &'a Scopes,
    policy: Policy,
    /// For each symbol, its number in the policy's table of its space.
    numbers: Vec<u32>,
    /// For each alias, what it stands for.
    actual: HashMap<SymbolId, SymbolId>,
    /// Class permissions that a symbol stands for, by map permission for maps.
    class_sets: HashMap<(SymbolId, Word), Vec<ClassPerms>>,
    /// Attributes made for a macro's unnamed arguments.
    unnamed: HashMap<u32, TypeId>,
    role_attributes: HashMap<SymbolId, crate::BitSet>,
    user_attributes: HashMap<SymbolId, crate::BitSet>,
    category_sets: HashMap<SymbolId, crate::BitSet>,
    permissionx: HashMap<SymbolId, xperms::XpermSet>,
    /// How much more sets and rules on types may take: see [`Builder::spend`].
    left: Cell<usize>,
    /// More was asked for: the policy is refused.
    exhausted: Cell<bool>,
}

/// The number of a symbol that has none.
const NO_NUMBER: u32 = u32::MAX;

impl<'a> Builder<'a> {
    fn new(tree: &'a Tree, containers: &'a Containers, scopes: &'a Scopes) -> Self {
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
            left: Cell::new((1 << 22) + 4 * tree.sources.len()),
            exhausted: Cell::new(false),
        }
    }

    /// Counts members of sets and rules that statements stand for: a few lines can stand for
    /// billions.
    ///
    /// The largest policies in use spend a tenth of what the limit lets them.
    fn spend(&self, node: Node, count: usize) -> Result<(), Failure> {
        let Some(left) = self.left.get().checked_sub(count) else {
            let message = "sets and rules take more memory than a policy of this size can need";
            let help = "write rules on attributes, not on all pairs of their types";
            self.exhausted.set(true);
            return Err(Failure::wrong(node, message.to_owned(), help));
        };
        self.left.set(left);
        Ok(())
    }

    /// Each type is a set of itself, and each role dominates itself: of many, what the last of them
    /// takes is much.
    fn spend_on_own_sets(&self) -> Result<(), Failure> {
        let own = |count: usize| count.saturating_mul(count / 128);
        let count = own(self.policy.types.len()) + own(self.policy.roles.len());
        self.spend(self.containers.get(Container::ROOT).node, count)
    }

    /// What the word at `node`, used in `at`, means.
    fn find(&self, at: Container, space: Space, node: Node) -> Result<Binding, Failure> {
        let Item::Word(word) = node.item else {
            return Err(expected(node, space.noun()));
        };
        self.scopes
            .find(self.tree, self.containers, at, space, word)
            .ok_or(Failure::unknown(node, space, word))
    }

    /// The symbol that the word at `node` names; for an alias, what it stands for.
    fn symbol(&self, at: Container, space: Space, node: Node) -> Result<SymbolId, Failure> {
        match self.find(at, space, node)? {
            Binding::Symbol(id) => Ok(self.actual.get(&id).copied().unwrap_or(id)),
            Binding::Unnamed(node, _) => Err(expected(node, space.noun())),
            Binding::Text(_) => Err(expected(node, space.noun())),
        }
    }

    /// The number, in the policy's table, of what the word at `node` names.
    fn number(&self, at: Container, space: Space, node: Node) -> Result<u32, Failure> {
        let id = self.symbol(at, space, node)?;
        match self.numbers[id.0 as usize] {
            NO_NUMBER => Err(expected(node, space.noun())),
            number => Ok(number),
        }
    }

    fn flavor(&self, id: SymbolId) -> Word {
        self.scopes.symbol(id).flavor
    }

    fn place(&self, node: Node) -> Option<SourceLine> {
        self.tree.sources.place(node.offset)
    }

    fn word(&self, node: Node) -> Result<Word, Failure> {
        match node.item {
            Item::Word(word) => Ok(word),
            _ => Err(expected(node, "name")),
        }
    }

    fn text(&self, node: Node) -> Result<&'a str, Failure> {
        match node.item {
            Item::Word(word) | Item::Quoted(word) => Ok(self.tree.text(word)),
            Item::List { .. } => Err(expected(node, "text")),
        }
    }

    /// The text at `node`, or the one that a macro's parameter stands for.
    fn text_or_param(&self, at: Container, node: Node) -> Result<&'a str, Failure> {
        let Item::Word(word) = node.item else { return self.text(node) };
        match self.scopes.find(self.tree, self.containers, at, Space::Text, word) {
            Some(Binding::Text(word)) => Ok(self.tree.text(word)),
            _ => Ok(self.tree.text(word)),
        }
    }

    fn full_name(&self, id: SymbolId) -> &'a str {
        &self.scopes.symbol(id).full_name
    }

    fn rule_base(&self, s: &LiveStatement) -> (Option<Branch>, Option<SourceLine>) {
        (s.branch, self.place(s.node))
    }
}

/// Something else stands where a thing of that kind is expected.
fn expected(node: Node, noun: &str) -> Failure {
    Failure::wrong_owned(
        node,
        format!("expected the name of a {noun}"),
        format!("name a {noun} here"),
    )
}
