//! How much memory a policy takes, counted before it is taken.

use super::{failure::Failure, tree::Node, tree::Tree};
use crate::policy::MEMBER_BYTES;
use std::cell::Cell;

/// What a policy may still take, in members of sets and rules.
#[derive(Debug)]
pub(super) struct Spending {
    most: usize,
    left: Cell<usize>,
    /// Where more was asked for: the policy is refused.
    exhausted: Cell<Option<Node>>,
}

impl Spending {
    /// As much as a policy of that text can need, and not more than `most_bytes`.
    pub(super) fn new(tree: &Tree, most_bytes: usize) -> Self {
        let most = ((1 << 22) + 4 * tree.sources.len()).min(most_bytes / MEMBER_BYTES);
        Self { most, left: Cell::new(most), exhausted: Cell::new(None) }
    }

    /// Counts members of sets and rules that statements stand for: a few lines can stand for
    /// billions.
    ///
    /// The largest policies in use spend a tenth of what the limit lets them.
    pub(super) fn spend(&self, node: Node, count: usize) -> Result<(), Failure> {
        match self.left.get().checked_sub(count) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.exhausted.set(Some(node));
                Err(failure(node))
            }
        }
    }

    /// Counts what blocks and macros copy, and is no member of a set.
    pub(super) fn spend_bytes(&self, node: Node, bytes: usize) -> Result<(), Failure> {
        self.spend(node, bytes.div_ceil(MEMBER_BYTES))
    }

    /// Whether more was asked for.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted.get().is_some()
    }

    /// That more was asked for.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.exhausted.get().map(failure)
    }

    /// Members that were counted.
    pub(super) fn spent(&self) -> usize {
        self.most - self.left.get()
    }
}

fn failure(node: Node) -> Failure {
    let message = "names, sets and rules take more memory than a policy of this size can need";
    let help = "write rules on attributes, not on all pairs of their types; copy less by macros, \
                and give blocks short names";
    Failure::wrong(node, message.to_owned(), help)
}
