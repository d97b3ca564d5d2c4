//! What is wrong with a binary policy.

/// What is wrong with a binary policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is something else.
    #[error("this is not a binary kernel policy")]
    NotAPolicy,
    /// It is of a version that is not read.
    #[error("version {0} is not supported, only 30 to 35")]
    Version(u32),
    /// It ends too early.
    #[error("the file ends here, or a count is greater than the file")]
    Truncated,
    /// A name is not text, or holds what no language of policies can spell.
    #[error("a name is not valid text, or holds characters that names cannot hold")]
    Name,
    /// A name stands twice in a table.
    #[error("`{0}` is defined twice")]
    Duplicate(String),
    /// A number that names a thing names nothing.
    #[error("there is no {kind} of number {number}")]
    Number {
        /// The kind of thing.
        kind: &'static str,
        /// The number.
        number: u32,
    },
    /// A value has no meaning.
    #[error("{0}")]
    Malformed(&'static str),
}
