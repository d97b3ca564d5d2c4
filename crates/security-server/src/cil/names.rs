//! Which names things may have, and how long they get by the blocks around them.

use super::containers::{Container, Containers, Kind};
use super::failure::Failure;
use super::spending::Spending;
use super::tree::{Node, Tree};
use super::words::{Word, kw};

/// Names with the blocks around them that are longer are refused.
const MAX_NAME: usize = 4096;

/// Bytes that something declared takes beside its name, which is kept twice.
const SYMBOL_BYTES: usize = 256;

/// Whether something may be called so.
pub(super) fn check(tree: &Tree, node: Node, word: Word) -> Result<(), Failure> {
    let text = tree.text(word);
    let reserved = matches!(
        word,
        kw::AND | kw::OR | kw::NOT | kw::XOR | kw::ALL | kw::SELF | kw::NOTSELF | kw::OTHER
    );
    let valid = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if valid && !reserved && text.len() < 2048 {
        return Ok(());
    }
    let help = "begin it with a letter, go on with letters, digits, `_` or `-`, and use no keyword";
    Err(Failure::wrong(node, format!("`{text}` cannot be a name"), help))
}

/// The name with the blocks around it, once what it takes is counted.
pub(super) fn qualified(
    tree: &Tree,
    containers: &Containers,
    scope: Container,
    (node, word): (Node, Word),
    spending: &Spending,
) -> Result<Box<str>, Failure> {
    let around = containers.around(scope).filter_map(|id| match containers.get(id).kind {
        Kind::Block { name, .. } => Some(tree.text(name)),
        _ => None,
    });
    let mut parts: Vec<&str> = std::iter::once(tree.text(word)).chain(around).collect();
    let len = parts.iter().map(|part| part.len() + 1).sum::<usize>();
    if len > MAX_NAME {
        let message = format!("with the blocks around it, a name is longer than {MAX_NAME} bytes");
        return Err(Failure::wrong(node, message, "give the blocks shorter names, or nest fewer"));
    }
    spending.spend_bytes(node, SYMBOL_BYTES + 2 * len)?;
    parts.reverse();
    Ok(parts.join(".").into())
}
