//! What policy refuses.

/// The cases of this part.
pub(crate) const CASES: &[&[crate::Case]] = &[];
