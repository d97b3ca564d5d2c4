//! Expressions over sets and truth values: `(and a (not b))`, `(range c0 c3)`, `all`.

use super::failure::Failure;
use super::tree::{Item, Node, Tree};
use super::words::{Word, kw};
use crate::BitSet;

/// Where an expression over sets gets its values.
pub(super) trait Sets {
    /// All members there are.
    fn all(&self) -> BitSet;
    /// The members that a name stands for.
    fn named(&mut self, node: Node, word: Word) -> Result<BitSet, Failure>;
    /// The members of the range between two names; only categories have one.
    fn range(&mut self, node: Node, _first: Node, _last: Node) -> Result<BitSet, Failure> {
        let message = "`range` is for categories".to_owned();
        Err(Failure::wrong(node, message, "list the names instead"))
    }
}

/// The value of the expression at `node`.
pub(super) fn set(tree: &Tree, node: Node, sets: &mut dyn Sets) -> Result<BitSet, Failure> {
    match node.item {
        Item::Word(kw::ALL) => Ok(sets.all()),
        Item::Word(word) => sets.named(node, word),
        Item::Quoted(_) => Err(Failure::wrong(
            node,
            "a string stands where a name or an expression is expected".to_owned(),
            "remove the quotes",
        )),
        Item::List { .. } if tree.nested.get() == MAX_NESTED => Err(Failure::wrong(
            node,
            "sets are nested too deep, with those that their names stand for".to_owned(),
            "name fewer sets by each other",
        )),
        Item::List { .. } => {
            tree.nested.set(tree.nested.get() + 1);
            let value = list(tree, node, tree.list(node), sets);
            tree.nested.set(tree.nested.get() - 1);
            value
        }
    }
}

/// Expressions inside of each other, also by the names in them: reading one takes stack.
const MAX_NESTED: u32 = 400;

/// The value of a list: an operator with its operands, or the union of all items.
fn list(tree: &Tree, node: Node, items: &[Node], sets: &mut dyn Sets) -> Result<BitSet, Failure> {
    let operator = match items.first().map(|item| item.item) {
        Some(Item::Word(word @ (kw::AND | kw::OR | kw::XOR | kw::NOT | kw::RANGE))) => word,
        _ => {
            let mut union = BitSet::new();
            for item in items {
                union.union_with(&set(tree, *item, sets)?);
            }
            return Ok(union);
        }
    };
    match (operator, &items[1..]) {
        (kw::NOT, [operand]) => {
            let mut value = sets.all();
            value.subtract(&set(tree, *operand, sets)?);
            Ok(value)
        }
        (kw::RANGE, [first, last]) => sets.range(node, *first, *last),
        (kw::AND | kw::OR | kw::XOR, [first, second]) => {
            let (mut a, mut b) = (set(tree, *first, sets)?, set(tree, *second, sets)?);
            match operator {
                kw::AND => a.intersect_with(&b),
                kw::OR => a.union_with(&b),
                _ => {
                    let mut both = a.clone();
                    both.intersect_with(&b);
                    a.subtract(&both);
                    b.subtract(&both);
                    a.union_with(&b);
                }
            }
            Ok(a)
        }
        (kw::NOT, _) => Err(operands(node, "not", 1)),
        (word, _) => Err(operands(node, tree.text(word), 2)),
    }
}

fn operands(node: Node, operator: &str, count: usize) -> Failure {
    let message =
        format!("`{operator}` takes {count} operand{}", if count == 1 { "" } else { "s" });
    Failure::wrong(node, message, "nest expressions to join more")
}

/// The value of an expression over truth values.
pub(super) fn truth(
    tree: &Tree,
    node: Node,
    named: &mut dyn FnMut(Node, Word) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let mut values: Vec<bool> = Vec::new();
    truth_steps(tree, node, &mut |step| {
        let value = match step {
            TruthStep::Name(node, word) => named(node, word)?,
            TruthStep::Not => !values.pop().unwrap_or(false),
            TruthStep::Join(word) => {
                let (b, a) = (values.pop().unwrap_or(false), values.pop().unwrap_or(false));
                match word {
                    kw::AND => a && b,
                    kw::OR => a || b,
                    kw::EQ => a == b,
                    _ => a != b,
                }
            }
        };
        values.push(value);
        Ok(())
    })?;
    Ok(values.pop().unwrap_or(false))
}

/// A step of an expression over truth values, in postfix order.
#[derive(Clone, Copy, Debug)]
pub(super) enum TruthStep {
    Name(Node, Word),
    Not,
    /// `and`, `or`, `xor`, `eq` or `neq`.
    Join(Word),
}

/// Gives the steps of the expression at `node` to `take`.
pub(super) fn truth_steps(
    tree: &Tree,
    node: Node,
    take: &mut dyn FnMut(TruthStep) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let items = match node.item {
        Item::Word(word) => return take(TruthStep::Name(node, word)),
        Item::Quoted(_) => {
            let message = "a string stands where a condition is expected".to_owned();
            return Err(Failure::wrong(node, message, "remove the quotes"));
        }
        Item::List { .. } => tree.list(node),
    };
    match items {
        [Node { item: Item::Word(kw::NOT), .. }, operand] => {
            truth_steps(tree, *operand, take)?;
            take(TruthStep::Not)
        }
        [
            Node {
                item: Item::Word(word @ (kw::AND | kw::OR | kw::XOR | kw::EQ | kw::NEQ)), ..
            },
            first,
            second,
        ] => {
            truth_steps(tree, *first, take)?;
            truth_steps(tree, *second, take)?;
            take(TruthStep::Join(*word))
        }
        [first, rest @ ..] if !is_operator(first) => {
            truth_steps(tree, *first, take)?;
            for item in rest {
                truth_steps(tree, *item, take)?;
                take(TruthStep::Join(kw::OR))?;
            }
            Ok(())
        }
        _ => {
            let message = "this is not a condition".to_owned();
            Err(Failure::wrong(node, message, "write a name or `(and a b)`, `(not a)`, …"))
        }
    }
}

fn is_operator(node: &Node) -> bool {
    matches!(node.item, Item::Word(kw::AND | kw::OR | kw::XOR | kw::EQ | kw::NEQ | kw::NOT))
}
