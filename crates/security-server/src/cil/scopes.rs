//! Names: what is declared in which container, and what a name means where it is used.

use super::containers::{Container, Containers, Entry, Kind};
use super::space::Space;
use super::spending::Spending;
use super::tree::{Item, Node, Tree};
use super::words::{Word, kw};
use super::{failure::Failure, names, report::Report};
use crate::hash::{HashMap, HashSet};

/// A number of a declared thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SymbolId(pub(super) u32);

/// Something declared.
#[derive(Clone, Debug)]
pub(super) struct Symbol {
    pub(super) space: Space,
    /// The keyword of the statement that declares it.
    pub(super) flavor: Word,
    pub(super) node: Node,
    /// The container that the statement stands in.
    pub(super) container: Container,
    /// The name with the blocks around it.
    pub(super) full_name: Box<str>,
}

/// What a name means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Binding {
    /// A declared thing.
    Symbol(SymbolId),
    /// What stands at `Node`, to be read in that container: a macro's unnamed argument.
    Unnamed(Node, Container),
    /// A text.
    Text(Word),
}

/// A call's arguments are looked up where the call stands; calls nested deeper are refused.
const MAX_CALLS: u32 = 64;

/// All names of a policy.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    names: HashMap<(Container, Space, Word), SymbolId>,
    symbols: Vec<Symbol>,
    /// Blocks, macros and optionals by name.
    blocks: HashMap<(Container, Word), Container>,
    /// Names that macros declare.
    in_macros: HashSet<(Container, Space, Word)>,
}

impl Scopes {
    /// The names of blocks, macros and optionals only: what the copying of containers needs.
    pub(super) fn of_blocks(containers: &Containers) -> Self {
        let mut scopes = Self::default();
        for id in containers.all() {
            scopes.declare_block(containers, id);
        }
        scopes
    }

    fn declare_block(&mut self, containers: &Containers, id: Container) {
        let body = containers.get(id);
        let (Kind::Block { name, .. } | Kind::Macro { name, .. } | Kind::Optional { name }) =
            body.kind
        else {
            return;
        };
        let scope = scope_of(containers, body.parent);
        self.blocks.entry((scope, name)).or_insert(id);
    }

    /// All names that are in force; `dead` optionals do not count.
    pub(super) fn new(
        tree: &Tree,
        containers: &Containers,
        live: &[Container],
        spending: &Spending,
        report: &mut Report,
    ) -> Self {
        let mut scopes = Self::of_blocks(containers);
        scopes.declare_object_r(containers);
        for id in live {
            scopes.check_block(tree, containers, *id).unwrap_or_else(|failure| report.add(failure));
            let scope = scope_of(containers, *id);
            for entry in containers.entries(*id) {
                if spending.is_exhausted() {
                    return scopes;
                }
                if let Entry::Statement(node) = entry {
                    let declare = (scope, *id, *node);
                    let declared = scopes.declare(tree, containers, declare, spending);
                    declared.unwrap_or_else(|failure| report.add(failure));
                }
            }
        }
        for id in containers.all().filter(|id| containers.in_macro(*id)) {
            scopes.declare_in_macro(tree, containers, id);
        }
        scopes
    }

    /// Two blocks of one name are a mistake, unless one of them is a copy.
    fn check_block(
        &self,
        tree: &Tree,
        containers: &Containers,
        id: Container,
    ) -> Result<(), Failure> {
        let body = containers.get(id);
        let Kind::Block { name, .. } = body.kind else { return Ok(()) };
        let is_copied = containers
            .around(id)
            .any(|id| matches!(containers.get(id).kind, Kind::Inherit { .. } | Kind::Call { .. }));
        let first = self.blocks.get(&(scope_of(containers, body.parent), name));
        if is_copied || first == Some(&id) {
            return Ok(());
        }
        let message = format!("block `{}` is declared twice", tree.text(name));
        Err(Failure::wrong(body.node, message, "use `(in block …)` to add to a block"))
    }

    /// Every policy has the role `object_r`, declared or not.
    fn declare_object_r(&mut self, containers: &Containers) {
        let root = Container::ROOT;
        self.names.insert((root, Space::Role, kw::OBJECT_R), SymbolId(0));
        self.symbols.push(Symbol {
            space: Space::Role,
            flavor: kw::ROLE,
            node: containers.get(root).node,
            container: root,
            full_name: "object_r".into(),
        });
    }

    fn declare(
        &mut self,
        tree: &Tree,
        containers: &Containers,
        (scope, container, node): (Container, Container, Node),
        spending: &Spending,
    ) -> Result<(), Failure> {
        let Some((space, flavor, name)) = declared(tree, node) else { return Ok(()) };
        let Item::Word(word) = name.item else {
            return Err(Failure::wrong(name, "a name is missing here".to_owned(), "add a name"));
        };
        names::check(tree, name, word)?;
        let full_name = names::qualified(tree, containers, scope, (name, word), spending)?;
        let id = SymbolId(self.symbols.len() as u32);
        if let Some(previous) = self.names.get(&(scope, space, word)) {
            let previous = &self.symbols[previous.0 as usize];
            if flavor == kw::ROLE && word == kw::OBJECT_R && previous.flavor == kw::ROLE {
                return Ok(());
            }
            let place = tree.sources.place(previous.node.offset);
            let line = place.map_or(0, |place| place.line);
            let message = format!("{} `{full_name}` is declared twice", space.noun());
            let help = format!("it is already declared in line {line}; remove one of them");
            return Err(Failure::wrong_owned(name, message, help));
        }
        self.names.insert((scope, space, word), id);
        self.symbols.push(Symbol { space, flavor, node, container, full_name });
        Ok(())
    }

    fn declare_in_macro(&mut self, tree: &Tree, containers: &Containers, id: Container) {
        let scope = scope_of(containers, id);
        for entry in containers.entries(id) {
            if let Entry::Statement(node) = entry
                && let Some((space, _, Node { item: Item::Word(word), .. })) = declared(tree, *node)
            {
                self.in_macros.insert((scope, space, word));
            }
        }
    }

    pub(super) fn symbol(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.0 as usize]
    }

    /// Everything declared, in the order of the text.
    pub(super) fn symbols(&self) -> impl Iterator<Item = (SymbolId, &Symbol)> {
        (0..).map(SymbolId).zip(&self.symbols)
    }

    /// What `name`, used in `at`, means.
    pub(super) fn find(
        &self,
        tree: &Tree,
        containers: &Containers,
        at: Container,
        space: Space,
        name: Word,
    ) -> Option<Binding> {
        let text = tree.text(name);
        if text.contains('.')
            && let Some(found) = self.find_qualified(tree, containers, at, space, text)
        {
            return Some(found);
        }
        let query = Query { scopes: self, tree, containers, space, name };
        query.around(at, 0).or_else(|| {
            self.names.get(&(Container::ROOT, space, name)).map(|id| Binding::Symbol(*id))
        })
    }

    /// `block.name`, or `.name` for a name outside all blocks.
    fn find_qualified(
        &self,
        tree: &Tree,
        containers: &Containers,
        at: Container,
        space: Space,
        text: &str,
    ) -> Option<Binding> {
        let mut parts = text.split('.').filter(|part| !part.is_empty()).peekable();
        let mut scope = if text.starts_with('.') {
            Container::ROOT
        } else {
            let first = tree.words.find(parts.next()?)?;
            self.find_block(tree, containers, at, first)?
        };
        while let Some(part) = parts.next() {
            let word = tree.words.find(part)?;
            if parts.peek().is_none() {
                return self.names.get(&(scope, space, word)).map(|id| Binding::Symbol(*id));
            }
            scope = self.concrete(containers, *self.blocks.get(&(scope, word))?)?;
        }
        None
    }

    fn concrete(&self, containers: &Containers, block: Container) -> Option<Container> {
        let concrete = matches!(containers.get(block).kind, Kind::Block { is_abstract: false, .. });
        concrete.then_some(block)
    }

    fn find_block(
        &self,
        tree: &Tree,
        containers: &Containers,
        at: Container,
        name: Word,
    ) -> Option<Container> {
        self.find_container(tree, containers, at, tree.text(name))
            .and_then(|block| self.concrete(containers, block))
    }

    /// The block, macro or optional that `text`, used in `at`, names.
    pub(super) fn find_container(
        &self,
        tree: &Tree,
        containers: &Containers,
        at: Container,
        text: &str,
    ) -> Option<Container> {
        let mut parts = text.split('.').filter(|part| !part.is_empty());
        let mut found = if text.starts_with('.') {
            Container::ROOT
        } else {
            let word = tree.words.find(parts.next()?)?;
            self.container_around(containers, at, word, 0)?
        };
        for part in parts {
            let word = tree.words.find(part)?;
            // An optional is no scope of its own: what is named behind it belongs to the scope
            // around it.
            found = *self.blocks.get(&(scope_of(containers, found), word))?;
        }
        (found != Container::ROOT).then_some(found)
    }

    fn container_around(
        &self,
        containers: &Containers,
        at: Container,
        word: Word,
        calls: u32,
    ) -> Option<Container> {
        for id in containers.around(at) {
            if let Some(found) = self.blocks.get(&(id, word)) {
                return Some(*found);
            }
            if let Kind::Inherit { block: Some(origin) } | Kind::Call { callee: Some(origin) } =
                containers.get(id).kind
                && calls < MAX_CALLS
            {
                let beside = containers.get(origin).parent;
                let found = self.container_around(containers, beside, word, calls + 1);
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// The full names in a space that resemble `text` most.
    pub(super) fn similar(&self, space: Space, text: &str) -> Option<&str> {
        let names = self.symbols.iter().filter(|s| s.space == space).map(|s| &*s.full_name);
        closest(text, names)
    }
}

/// The candidate that resembles `text`, if one does.
pub(crate) fn closest<'a>(
    text: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let scored = candidates.map(|name| (strsim::jaro_winkler(text, name), name));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}

/// One search for a name.
struct Query<'a> {
    scopes: &'a Scopes,
    tree: &'a Tree,
    containers: &'a Containers,
    space: Space,
    name: Word,
}

impl Query<'_> {
    /// Searches outwards from `at`, up to but not in the root.
    fn around(&self, at: Container, calls: u32) -> Option<Binding> {
        for id in self.containers.around(at) {
            let found = match &self.containers.get(id).kind {
                Kind::Root => return None,
                Kind::Block { is_abstract: false, .. } | Kind::Macro { .. } => {
                    let key = (id, self.space, self.name);
                    self.scopes.names.get(&key).map(|id| Binding::Symbol(*id))
                }
                Kind::Inherit { block: Some(block) } if calls < MAX_CALLS => {
                    let outside = self.containers.get(id).parent;
                    let beside = self.containers.get(*block).parent;
                    return self
                        .around(outside, calls + 1)
                        .or_else(|| self.around(beside, calls + 1));
                }
                Kind::Call { callee: Some(callee) } if calls < MAX_CALLS => {
                    self.in_call(id, *callee, calls)
                }
                _ => None,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn in_call(&self, call: Container, callee: Container, calls: u32) -> Option<Binding> {
        if self.scopes.in_macros.contains(&(callee, self.space, self.name)) {
            // Declared by the macro: then it is now declared where the call stands.
            return None;
        }
        self.argument(call, callee)
            .or_else(|| self.around(self.containers.get(callee).parent, calls + 1))
    }

    fn argument(&self, call: Container, callee: Container) -> Option<Binding> {
        let Kind::Macro { params, .. } = &self.containers.get(callee).kind else { return None };
        let fits = |kind| Space::of_param(kind) == Some(self.space);
        let index = params.iter().position(|p| p.name == self.name && fits(p.kind))?;
        let body = self.containers.get(call);
        let arguments = self.tree.list(body.node).get(2).map_or(&[][..], |a| self.tree.list(*a));
        let argument = *arguments.get(index)?;
        let outside = body.parent;
        match argument.item {
            Item::Quoted(word) => Some(Binding::Text(word)),
            Item::List { .. } => Some(Binding::Unnamed(argument, outside)),
            Item::Word(word) => {
                let found = self.scopes.find(self.tree, self.containers, outside, self.space, word);
                match self.space {
                    Space::Text | Space::IpAddr => Some(found.unwrap_or(Binding::Text(word))),
                    _ => found,
                }
            }
        }
    }
}

/// The block, macro or root that names declared in `id` belong to.
fn scope_of(containers: &Containers, id: Container) -> Container {
    let is_scope = |id: &Container| {
        matches!(containers.get(*id).kind, Kind::Root | Kind::Block { .. } | Kind::Macro { .. })
    };
    containers.around(id).find(is_scope).unwrap_or(Container::ROOT)
}

/// The space, keyword and name that a statement declares.
fn declared(tree: &Tree, node: Node) -> Option<(Space, Word, Node)> {
    let items = tree.list(node);
    let Item::Word(keyword) = items.first()?.item else { return None };
    let space = Space::declared_by(keyword)?;
    Some((space, keyword, *items.get(1).unwrap_or(&node)))
}
