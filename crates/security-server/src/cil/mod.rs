//! Front end for the Common Intermediate Language (CIL).
//!
//! ```text
//! text ─ tree ─▶ lists ─ containers ─▶ statements in blocks, macros, … ─ expand ─▶ where they hold
//!                                                          ─ scopes ─▶ names ─ build ─▶ Policy
//! ```
//!
//! An optional whose statements name something unknown is dropped as a whole, and everything is
//! resolved again without it, until nothing changes: what it declared may be named elsewhere.

mod build;
mod containers;
mod errors;
mod expand;
mod failure;
mod marks;
mod names;
mod report;
mod scopes;
mod sets;
mod space;
mod spending;
mod tree;
mod words;

pub use errors::{PolicyError, PolicyErrors};
pub(crate) use scopes::closest;

use crate::hash::HashSet;
use crate::policy::Policy;
use containers::{Container, Containers, Entry, Kind};
use failure::Failure;
use report::Report;
use scopes::Scopes;
use spending::Spending;
use tree::Tree;

/// Reads the policy that CIL files spell together: (name for messages, text) each.
///
/// # Errors
///
/// [`PolicyErrors`] with every mistake found, each with its place.
pub fn compile<N: AsRef<str>, T: AsRef<str>>(files: &[(N, T)]) -> Result<Policy, PolicyErrors> {
    compile_within(files, usize::MAX)
}

/// The same, if the policy takes no more than about `most` bytes: see [`Policy::bytes`].
///
/// # Errors
///
/// As for [`compile`].
pub fn compile_within<N: AsRef<str>, T: AsRef<str>>(
    files: &[(N, T)],
    most: usize,
) -> Result<Policy, PolicyErrors> {
    let mut tree = Tree::new();
    let mut statements = Vec::new();
    let mut broken = Vec::new();
    for (name, text) in files {
        match tree.parse(name.as_ref(), text.as_ref()) {
            Ok(parsed) => statements.extend(parsed),
            Err(errors) => broken.extend_from_slice(errors.errors()),
        }
    }
    if !broken.is_empty() {
        return Err(PolicyErrors::new(broken));
    }
    let mut report = Report::default();
    let mut containers = Containers::new(&tree, &statements, most, &mut report);
    expand::expand(&tree, &mut containers, &mut report);
    check(&mut report, &tree, &Scopes::default())?;
    resolve(&tree, &containers, most, report)
}

/// How often optionals may be dropped in policies of any size, and of how many statements in all.
/// Large policies in use need fewer than ten passes.
const PASSES: usize = 32;
const MOST_STATEMENTS: usize = 1 << 22;

/// Resolves names until no optional is dropped any more.
fn resolve(
    tree: &Tree,
    containers: &Containers,
    most: usize,
    mut report: Report,
) -> Result<Policy, PolicyErrors> {
    let (mut passes, mut resolved) = (0, 0);
    loop {
        let dropped = report.dropped.clone();
        let live = live_containers(containers, &dropped);
        passes += 1;
        resolved += live.iter().map(|id| containers.entries(*id).len()).sum::<usize>();
        let spending = Spending::new(tree, most);
        let scopes = Scopes::new(tree, containers, &live, &spending, &mut report);
        check(&mut report, tree, &scopes)?;
        let policy = build::build(tree, containers, &scopes, &live, &spending, &mut report);
        if let Some(last) = report.dropped.difference(&dropped).next() {
            report.failures.clear();
            if passes >= PASSES && resolved > MOST_STATEMENTS {
                report.add(too_often(containers, *last));
                check(&mut report, tree, &scopes)?;
            }
            continue;
        }
        if report.failures.is_empty() {
            // Where mistakes are tried again, nobody has reported it.
            spending.failure().into_iter().for_each(|failure| report.add(failure));
        }
        check(&mut report, tree, &scopes)?;
        return Ok(policy);
    }
}

/// That an optional was the last of too many that are dropped one after the other.
fn too_often(containers: &Containers, optional: Container) -> Failure {
    let message = "optionals that name each other are dropped one by one, and there are too many";
    let help = "put what depends on the same unknown name into one optional";
    Failure::wrong(containers.get(optional).node, message.to_owned(), help)
}

/// The containers whose statements are in force, outer ones first.
fn live_containers(containers: &Containers, dropped: &HashSet<Container>) -> Vec<Container> {
    let mut live = Vec::new();
    let mut pending = vec![Container::ROOT];
    while let Some(id) = pending.pop() {
        let gone = match containers.get(id).kind {
            Kind::Macro { .. } | Kind::In { .. } | Kind::TunableIf | Kind::Gone => true,
            Kind::Block { is_abstract, .. } => is_abstract,
            _ => dropped.contains(&id),
        };
        if gone {
            continue;
        }
        live.push(id);
        let inner = containers.entries(id).iter().rev().filter_map(|entry| match entry {
            Entry::Container(inner) => Some(*inner),
            Entry::Statement(_) => None,
        });
        pending.extend(inner);
    }
    live
}

/// Nothing is wrong so far, or what is.
fn check(report: &mut Report, tree: &Tree, scopes: &Scopes) -> Result<(), PolicyErrors> {
    if report.failures.is_empty() {
        return Ok(());
    }
    let failures = std::mem::take(&mut report.failures).into_iter();
    Err(PolicyErrors::new(failures.map(|failure| error(failure, tree, scopes)).collect()))
}

fn error(failure: Failure, tree: &Tree, scopes: &Scopes) -> PolicyError {
    match failure {
        Failure::Wrong { node, message, help } | Failure::Missing { node, message, help } => {
            tree.sources.error(node.offset, message, Some(help))
        }
        Failure::Unknown { node, space, word } => {
            let text = tree.text(word);
            let noun = space.noun();
            let help = match scopes.similar(space, text) {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => format!("declare it, or correct the name of the {noun}"),
            };
            tree.sources.error(node.offset, format!("unknown {noun} `{text}`"), Some(help))
        }
    }
}
