//! Why a statement has no effect.

use super::{space::Space, tree::Node, words::Word};

/// Bytes that are kept of a message.
const MOST_BYTES: usize = 8192;

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

    /// The same with short words: a hundred mistakes may each quote a long text.
    pub(super) fn shortened(self) -> Self {
        let short = |mut text: String| {
            if text.len() > MOST_BYTES {
                text.truncate(text.floor_char_boundary(MOST_BYTES));
                text.push('…');
                text.shrink_to_fit();
            }
            text
        };
        match self {
            Self::Unknown { .. } => self,
            Self::Missing { node, message, help } => {
                Self::Missing { node, message: short(message), help: short(help) }
            }
            Self::Wrong { node, message, help } => {
                Self::Wrong { node, message: short(message), help: short(help) }
            }
        }
    }

    pub(super) fn unknown(node: Node, space: Space, word: Word) -> Self {
        Self::Unknown { node, space, word }
    }
}
