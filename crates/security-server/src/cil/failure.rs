//! Why a statement has no effect.

use super::{space::Space, tree::Node, words::Word};

/// Why a statement has no effect.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// It names something that does not exist: an optional around it is dropped.
    Unknown { node: Node, space: Space, word: Word },
    /// The same, where the message says more than what kind of thing it is.
    Missing { node: Node, message: String, help: String },
    /// It is wrong.
    Wrong { node: Node, message: String, help: String },
}

impl Failure {
    pub(super) fn wrong(node: Node, message: String, help: &str) -> Self {
        Self::wrong_owned(node, message, help.to_owned())
    }

    pub(super) fn wrong_owned(node: Node, message: String, help: String) -> Self {
        Self::Wrong { node, message, help }
    }

    pub(super) fn unknown(node: Node, space: Space, word: Word) -> Self {
        Self::Unknown { node, space, word }
    }
}
