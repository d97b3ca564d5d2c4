//! Copies what `tunableif`, `in`, `blockinherit` and `call` copy, in the order in which secilc
//! does.

use super::containers::{Container, Containers, Entry, Kind};
use super::failure::Failure;
use super::report::Report;
use super::scopes::Scopes;
use super::sets;
use super::tree::{Item, Node, Tree};
use super::words::{Word, kw};
use crate::hash::{HashMap, HashSet};

/// Blocks that inherit and macros that call one another in longer chains are refused.
const MAX_CHAIN: usize = 64;

/// Brings every statement to where it is in force.
pub(super) fn expand(tree: &Tree, containers: &mut Containers, report: &mut Report) {
    tunables(tree, containers, report);
    insert(tree, containers, false, report);
    inherit(tree, containers, report);
    abstract_blocks(tree, containers, report);
    insert(tree, containers, true, report);
    calls(tree, containers, report);
}

/// Puts the branch that holds of each `tunableif` in its place.
fn tunables(tree: &Tree, containers: &mut Containers, report: &mut Report) {
    let values = tunable_values(tree, containers, report);
    let mut next = 0;
    // Copies add containers, which are visited in turn.
    while next < containers.len() {
        let id = Container(next as u32);
        next += 1;
        if !matches!(containers.get(id).kind, Kind::TunableIf) {
            continue;
        }
        let moved = tunable_branch(tree, containers, id, &values).and_then(|branch| {
            let parent = containers.get(id).parent;
            branch.map_or(Ok(()), |branch| containers.copy(branch, parent))
        });
        containers.get_mut(id).kind = Kind::Gone;
        moved.unwrap_or_else(|failure| report.add(failure));
    }
}

fn tunable_values(
    tree: &Tree,
    containers: &Containers,
    report: &mut Report,
) -> HashMap<Word, bool> {
    let mut values = HashMap::default();
    for id in containers.all() {
        for entry in containers.entries(id) {
            let Entry::Statement(node) = entry else { continue };
            let [keyword, rest @ ..] = tree.list(*node) else { continue };
            if !matches!(keyword.item, Item::Word(kw::TUNABLE)) {
                continue;
            }
            match rest.iter().map(|node| node.item).collect::<Vec<_>>()[..] {
                [Item::Word(name), Item::Word(value @ (kw::TRUE | kw::FALSE))] => {
                    values.insert(name, value == kw::TRUE);
                }
                _ => {
                    let message = "a tunable has a name and a value".to_owned();
                    report.add(Failure::wrong(*node, message, "write `(tunable name true)`"));
                }
            }
        }
    }
    values
}

fn tunable_branch(
    tree: &Tree,
    containers: &Containers,
    id: Container,
    values: &HashMap<Word, bool>,
) -> Result<Option<Container>, Failure> {
    let body = containers.get(id);
    let expression = tree.list(body.node)[1];
    let value = sets::truth(tree, expression, &mut |node, word| {
        let found = values.get(&last_part(tree, word)).copied();
        found.ok_or_else(|| Failure::unknown(node, super::space::Space::Tunable, word))
    })?;
    let branches = body.entries.iter().filter_map(|entry| match entry {
        Entry::Container(branch) => Some(*branch),
        Entry::Statement(_) => None,
    });
    let mut chosen = branches.filter(
        |branch| matches!(containers.get(*branch).kind, Kind::Branch(when) if when == value),
    );
    Ok(chosen.next())
}

/// Tunables have one name each, whatever block they stand in.
fn last_part(tree: &Tree, word: Word) -> Word {
    let last = tree.text(word).rsplit('.').next();
    last.and_then(|last| tree.words.find(last)).unwrap_or(word)
}

/// Copies the content of `in` containers to the containers that they name.
fn insert(tree: &Tree, containers: &mut Containers, after_inherit: bool, report: &mut Report) {
    let is_due = |containers: &Containers, id: &Container| matches!(containers.get(*id).kind, Kind::In { after, .. } if after == after_inherit);
    let mut pending: Vec<Container> =
        containers.all().filter(|id| is_due(containers, id)).collect();
    while !pending.is_empty() {
        let scopes = Scopes::of_blocks(containers);
        let before = pending.len();
        let mut failures = Vec::new();
        // What one inserts may declare what another names: those that fail are tried again.
        pending.retain(|id| match insert_one(tree, containers, &scopes, *id) {
            Ok(()) => false,
            Err(failure) => {
                failures.push(failure);
                true
            }
        });
        if pending.len() == before {
            failures.into_iter().for_each(|failure| report.add(failure));
            return;
        }
    }
}

fn insert_one(
    tree: &Tree,
    containers: &mut Containers,
    scopes: &Scopes,
    id: Container,
) -> Result<(), Failure> {
    let body = containers.get(id);
    let (Kind::In { target, .. }, parent) = (body.kind.clone(), body.parent) else {
        return Ok(());
    };
    let target = named(tree, containers, scopes, parent, target)?;
    containers.copy(id, target)?;
    containers.get_mut(id).kind = Kind::Gone;
    Ok(())
}

/// The container that the word at `node` names.
fn named(
    tree: &Tree,
    containers: &Containers,
    scopes: &Scopes,
    at: Container,
    node: Node,
) -> Result<Container, Failure> {
    let Item::Word(word) = node.item else {
        return Err(Failure::wrong(node, "a name is missing here".to_owned(), "add a name"));
    };
    scopes.find_container(tree, containers, at, tree.text(word)).ok_or(Failure::unknown(
        node,
        super::space::Space::Block,
        word,
    ))
}

/// Fills every `blockinherit` with the content of the block that it names.
fn inherit(tree: &Tree, containers: &mut Containers, report: &mut Report) {
    let scopes = Scopes::of_blocks(containers);
    for id in containers.all() {
        if matches!(containers.get(id).kind, Kind::Inherit { block: None }) {
            let origin = second(tree, containers, id)
                .and_then(|node| named(tree, containers, &scopes, containers.get(id).parent, node));
            match origin {
                Ok(block) => containers.get_mut(id).kind = Kind::Inherit { block: Some(block) },
                Err(failure) => report.fail(containers, id, failure),
            }
        }
    }
    fill_copies(containers, report, |containers, id| match containers.get(id).kind {
        Kind::Inherit { block: Some(block) } if !containers.in_macro(id) => Some(block),
        _ => None,
    });
}

/// Fills every call that is in force with the body of the macro that it names.
fn calls(tree: &Tree, containers: &mut Containers, report: &mut Report) {
    let scopes = Scopes::of_blocks(containers);
    for id in containers.all() {
        if matches!(containers.get(id).kind, Kind::Call { .. }) {
            match callee(tree, containers, &scopes, id) {
                Ok(callee) => {
                    containers.get_mut(id).kind = Kind::Call { callee: Some(callee) };
                }
                Err(failure) if containers.is_live(id) => report.fail(containers, id, failure),
                Err(_) => {}
            }
        }
    }
    fill_copies(containers, report, |containers, id| match containers.get(id).kind {
        Kind::Call { callee } if containers.is_live(id) => callee,
        _ => None,
    });
}

fn callee(
    tree: &Tree,
    containers: &Containers,
    scopes: &Scopes,
    id: Container,
) -> Result<Container, Failure> {
    let body = containers.get(id);
    let name = second(tree, containers, id)?;
    let found = named(tree, containers, scopes, body.parent, name)?;
    let Kind::Macro { params, .. } = &containers.get(found).kind else {
        let message = "only a macro can be called".to_owned();
        return Err(Failure::wrong(name, message, "use `blockinherit` for a block"));
    };
    let given = tree.list(body.node).get(2).map_or(0, |list| tree.list(*list).len());
    if given != params.len() {
        let message = format!("the macro takes {} arguments, but {given} are given", params.len());
        return Err(Failure::wrong(body.node, message, "give one argument for each parameter"));
    }
    Ok(found)
}

fn second(tree: &Tree, containers: &Containers, id: Container) -> Result<Node, Failure> {
    let node = containers.get(id).node;
    let name = tree.list(node).get(1).copied();
    name.ok_or_else(|| Failure::wrong(node, "a name is missing here".to_owned(), "add a name"))
}

/// Copies into each container that `origin` gives a source for, and into those that the copies
/// bring along.
fn fill_copies(
    containers: &mut Containers,
    report: &mut Report,
    origin: impl Fn(&Containers, Container) -> Option<Container>,
) {
    // Sources as they were before any copy: what a block inherits is copied with it as a container
    // of its own.
    let mut filled = HashSet::default();
    let mut next = 0;
    while next < containers.len() {
        let id = Container(next as u32);
        next += 1;
        let Some(source) = origin(containers, id) else { continue };
        if !containers.entries(id).is_empty() || filled.contains(&id) {
            continue;
        }
        let copied =
            chain(containers, id, source).and_then(|()| copy_unfilled(containers, source, id));
        if let Err(failure) = copied {
            report.fail(containers, id, failure);
        }
        filled.insert(id);
    }
}

/// Refuses copies into themselves.
fn chain(containers: &Containers, id: Container, source: Container) -> Result<(), Failure> {
    let origins = containers.around(id).filter_map(|around| match containers.get(around).kind {
        Kind::Inherit { block: Some(origin) } | Kind::Call { callee: Some(origin) } => Some(origin),
        _ => None,
    });
    let origins: Vec<Container> = origins.collect();
    let within = containers.around(id).skip(1).any(|around| around == source);
    if within || origins[1..].contains(&source) || origins.len() > MAX_CHAIN {
        let message = "this copies a container into itself".to_owned();
        let help = "break the cycle of `blockinherit` or `call`";
        return Err(Failure::wrong(containers.get(id).node, message, help));
    }
    Ok(())
}

/// Copies `source` into `id`; copies within it that are already filled are emptied first, to be
/// filled anew.
fn copy_unfilled(
    containers: &mut Containers,
    source: Container,
    id: Container,
) -> Result<(), Failure> {
    let first_new = containers.len();
    containers.copy(source, id)?;
    for copy in (first_new..containers.len()).map(|index| Container(index as u32)) {
        if matches!(containers.get(copy).kind, Kind::Inherit { .. } | Kind::Call { .. }) {
            for entry in std::mem::take(&mut containers.get_mut(copy).entries) {
                if let Entry::Container(inner) = entry {
                    containers.get_mut(inner).kind = Kind::Gone;
                }
            }
        }
    }
    Ok(())
}

/// Marks the blocks that `blockabstract` names, which must stand in them.
fn abstract_blocks(tree: &Tree, containers: &mut Containers, report: &mut Report) {
    let scopes = Scopes::of_blocks(containers);
    for id in containers.all() {
        let marked = containers.entries(id).iter().find_map(|entry| match entry {
            Entry::Statement(node) => match tree.list(*node) {
                [Node { item: Item::Word(kw::BLOCKABSTRACT), .. }, name] => Some(*name),
                _ => None,
            },
            Entry::Container(_) => None,
        });
        let Some(node) = marked else { continue };
        if matches!(containers.get(id).kind, Kind::Inherit { .. }) {
            // A copy of an abstract block's content does not make the copy abstract.
            continue;
        }
        let itself = named(tree, containers, &scopes, id, node).is_ok_and(|found| found == id);
        match &mut containers.get_mut(id).kind {
            Kind::Block { is_abstract, .. } if itself => *is_abstract = true,
            _ => {
                let message = "`blockabstract` names the block that it stands in".to_owned();
                report.add(Failure::wrong(node, message, "write the name of the enclosing block"));
            }
        }
    }
}
