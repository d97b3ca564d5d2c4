//! Status, streams, environment and working directory.

/// The cases of this part.
pub(crate) const CASES: &[&[crate::Case]] = &[];
