//! Statements in the containers that hold them: blocks, macros, optionals, branches.

use super::failure::Failure;
use super::report::Report;
use super::tree::{Item, Node, Tree};
use super::words::{Word, kw};

/// A number of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Container(pub(super) u32);

impl Container {
    pub(super) const ROOT: Self = Self(0);
}

/// What a macro's parameter stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Param {
    pub(super) kind: Word,
    pub(super) name: Word,
}

/// What a container is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Root,
    Block {
        name: Word,
        is_abstract: bool,
    },
    Macro {
        name: Word,
        params: Vec<Param>,
    },
    Optional {
        name: Word,
    },
    In {
        target: Node,
        after: bool,
    },
    TunableIf,
    BooleanIf,
    Branch(bool),
    /// The content of an inherited block, once it is known which.
    Inherit {
        block: Option<Container>,
    },
    /// The content of a called macro, once it is known which.
    Call {
        callee: Option<Container>,
    },
    /// A container whose content has gone elsewhere.
    Gone,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    Statement(Node),
    Container(Container),
}

#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) kind: Kind,
    pub(super) parent: Container,
    /// The statement that it comes from.
    pub(super) node: Node,
    pub(super) entries: Vec<Entry>,
    depth: u32,
}

/// All containers; the first is the root.
#[derive(Debug)]
pub(super) struct Containers {
    bodies: Vec<Body>,
    /// How many more entries copies may add.
    budget: usize,
}

/// Bytes that a copy of a statement or container takes at most, about, while a policy is read.
const COPY_BYTES: usize = 256;

/// Containers that are nested deeper are refused.
const MAX_DEPTH: u32 = 256;

impl Containers {
    /// The containers of `statements`, as written; what is copied takes `most` bytes at most.
    pub(super) fn new(tree: &Tree, statements: &[Node], most: usize, report: &mut Report) -> Self {
        let node = Node { offset: 0, item: Item::List { start: 0, len: 0 } };
        let root =
            Body { kind: Kind::Root, parent: Container::ROOT, node, entries: Vec::new(), depth: 0 };
        let mut out = Self { bodies: vec![root], budget: 0 };
        out.fill(tree, Container::ROOT, statements, report);
        let entries: usize = out.bodies.iter().map(|body| body.entries.len()).sum();
        out.budget = (100_000 + 64 * entries).min(most / COPY_BYTES);
        out
    }

    pub(super) fn get(&self, id: Container) -> &Body {
        &self.bodies[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: Container) -> &mut Body {
        &mut self.bodies[id.0 as usize]
    }

    pub(super) fn entries(&self, id: Container) -> &[Entry] {
        &self.get(id).entries
    }

    /// How many containers there are.
    pub(super) fn len(&self) -> usize {
        self.bodies.len()
    }

    /// Every container, in the order in which they were made.
    pub(super) fn all(&self) -> impl Iterator<Item = Container> + use<> {
        (0..self.bodies.len() as u32).map(Container)
    }

    /// `id` and the containers around it, innermost first.
    pub(super) fn around(&self, id: Container) -> impl Iterator<Item = Container> + '_ {
        let next = |id: &Container| (*id != Container::ROOT).then(|| self.get(*id).parent);
        std::iter::successors(Some(id), next)
    }

    /// Whether the container's statements are in force: it lies in no macro, abstract block or
    /// moved container.
    pub(super) fn is_live(&self, id: Container) -> bool {
        self.around(id).all(|id| match self.get(id).kind {
            Kind::Macro { .. } | Kind::In { .. } | Kind::TunableIf | Kind::Gone => false,
            Kind::Block { is_abstract, .. } => !is_abstract,
            _ => true,
        })
    }

    /// Whether the container lies in a macro.
    pub(super) fn in_macro(&self, id: Container) -> bool {
        self.around(id).any(|id| matches!(self.get(id).kind, Kind::Macro { .. }))
    }

    fn add(&mut self, kind: Kind, parent: Container, node: Node) -> Result<Container, Failure> {
        let depth = self.get(parent).depth + 1;
        if depth > MAX_DEPTH {
            let message = "containers are nested deeper than 256 levels";
            return Err(Failure::wrong(node, message.to_owned(), "copy less into one another"));
        }
        let id = Container(self.bodies.len() as u32);
        self.bodies.push(Body { kind, parent, node, entries: Vec::new(), depth });
        self.get_mut(parent).entries.push(Entry::Container(id));
        Ok(id)
    }

    fn fill(&mut self, tree: &Tree, parent: Container, statements: &[Node], report: &mut Report) {
        for node in statements {
            if let Err(failure) = self.statement(tree, parent, *node, report) {
                report.add(failure);
            }
        }
    }

    fn statement(
        &mut self,
        tree: &Tree,
        parent: Container,
        node: Node,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let items = tree.list(node);
        let Some(Node { item: Item::Word(keyword), .. }) = items.first().copied() else {
            let help = "begin it with a keyword, as in `(type t)`";
            return Err(Failure::wrong(node, "a statement begins with a word".to_owned(), help));
        };
        let (kind, rest) = match keyword {
            kw::BLOCK => {
                (Kind::Block { name: name(items, node, 1)?, is_abstract: false }, &items[2..])
            }
            kw::OPTIONAL => (Kind::Optional { name: name(items, node, 1)? }, &items[2..]),
            kw::MACRO => {
                let name = name(items, node, 1)?;
                (Kind::Macro { name, params: params(tree, items, node)? }, &items[3..])
            }
            kw::IN => in_container(items, node)?,
            kw::TUNABLEIF => (Kind::TunableIf, after(items, node, 2)?),
            kw::BOOLEANIF => (Kind::BooleanIf, after(items, node, 2)?),
            kw::BLOCKINHERIT => (Kind::Inherit { block: None }, &[][..]),
            kw::CALL => (Kind::Call { callee: None }, &[][..]),
            _ => {
                self.get_mut(parent).entries.push(Entry::Statement(node));
                return Ok(());
            }
        };
        let branches = matches!(kind, Kind::TunableIf | Kind::BooleanIf);
        let id = self.add(kind, parent, node)?;
        if branches {
            for branch in rest {
                self.branch(tree, id, *branch, report)?;
            }
        } else {
            self.fill(tree, id, rest, report);
        }
        Ok(())
    }

    fn branch(
        &mut self,
        tree: &Tree,
        parent: Container,
        node: Node,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let items = tree.list(node);
        let when = match items.first().map(|first| first.item) {
            Some(Item::Word(kw::TRUE)) => true,
            Some(Item::Word(kw::FALSE)) => false,
            _ => {
                let message = "a branch is `(true …)` or `(false …)`".to_owned();
                return Err(Failure::wrong(node, message, "put the statements into a branch"));
            }
        };
        let id = self.add(Kind::Branch(when), parent, node)?;
        self.fill(tree, id, &items[1..], report);
        Ok(())
    }

    /// Copies the content of `from` to the end of `to`.
    pub(super) fn copy(&mut self, from: Container, to: Container) -> Result<(), Failure> {
        // The entries as they are now: copying a block into itself must end.
        let entries = self.entries(from).to_vec();
        self.spend(entries.len(), to)?;
        for entry in entries {
            match entry {
                Entry::Statement(_) => self.get_mut(to).entries.push(entry),
                Entry::Container(inner) => {
                    let Body { kind, node, .. } = self.get(inner).clone_head();
                    let copy = self.add(kind, to, node)?;
                    self.copy(inner, copy)?;
                }
            }
        }
        Ok(())
    }

    fn spend(&mut self, count: usize, at: Container) -> Result<(), Failure> {
        match self.budget.checked_sub(count) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => {
                let message = "copies of blocks and macros grow without measure".to_owned();
                let help = "a block that inherits, or a macro that calls, itself many times over";
                Err(Failure::wrong(self.get(at).node, message, help))
            }
        }
    }
}

impl Body {
    /// The same container without its content.
    fn clone_head(&self) -> Self {
        let Self { kind, parent, node, depth, .. } = self;
        Self {
            kind: kind.clone(),
            parent: *parent,
            node: *node,
            entries: Vec::new(),
            depth: *depth,
        }
    }
}

/// The word at `index` of a statement.
fn name(items: &[Node], node: Node, index: usize) -> Result<Word, Failure> {
    match items.get(index).map(|item| item.item) {
        Some(Item::Word(word)) => Ok(word),
        _ => Err(Failure::wrong(node, "a name is missing here".to_owned(), "add a name")),
    }
}

fn after(items: &[Node], node: Node, count: usize) -> Result<&[Node], Failure> {
    let missing = || {
        let help = "write `(booleanif expression (true …) (false …))`";
        Failure::wrong(node, "a condition is missing here".to_owned(), help)
    };
    items.get(count..).ok_or_else(missing)
}

fn in_container(items: &[Node], node: Node) -> Result<(Kind, &[Node]), Failure> {
    let position = match items.get(1).map(|item| item.item) {
        Some(Item::Word(kw::AFTER)) => Some(true),
        Some(Item::Word(kw::BEFORE)) => Some(false),
        _ => None,
    };
    let at = if position.is_some() { 2 } else { 1 };
    name(items, node, at)?;
    let kind = Kind::In { target: items[at], after: position.unwrap_or(false) };
    Ok((kind, &items[at + 1..]))
}

fn params(tree: &Tree, items: &[Node], node: Node) -> Result<Vec<Param>, Failure> {
    let Some(list) = items.get(2) else {
        let help = "write `(macro name ((type parameter) …) …)`";
        return Err(Failure::wrong(node, "a macro needs a list of parameters".to_owned(), help));
    };
    let param = |item: &Node| match tree.list(*item) {
        [Node { item: Item::Word(kind), .. }, Node { item: Item::Word(name), .. }] => {
            Ok(Param { kind: *kind, name: *name })
        }
        _ => {
            let message = "a parameter is `(kind name)`".to_owned();
            Err(Failure::wrong(*item, message, "for example `(type domain)`"))
        }
    };
    tree.list(*list).iter().map(param).collect()
}
