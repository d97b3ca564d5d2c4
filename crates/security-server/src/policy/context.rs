//! Security contexts: `user:role:type[:range]`.

use super::Range;
use crate::{RoleId, TypeId, UserId};

/// A security context in the numbers of one policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Context {
    /// The user.
    pub user: UserId,
    /// The role.
    pub role: RoleId,
    /// The type.
    pub type_: TypeId,
    /// The range, in a multi-level policy.
    pub range: Option<Box<Range>>,
}

/// Why a text is not a security context of the policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// A part is missing, or there is one too many.
    #[error("a context reads `user:role:type`, followed by `:range` in a multi-level policy")]
    Malformed,
    /// The policy has no user, role, type, sensitivity or category of that name.
    #[error("the policy has no {kind} `{name}`")]
    Unknown {
        /// What was looked for.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The high level does not dominate the low one.
    #[error("the high level of `{0}` does not dominate its low level")]
    NotARange(String),
    /// The parts exist but do not go together.
    #[error("{0}")]
    Refused(&'static str),
}
