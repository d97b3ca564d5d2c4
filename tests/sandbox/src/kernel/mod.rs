//! What the kernel offers to programs, where mediation could change it.

/// The cases of this part.
pub(crate) const CASES: &[&[crate::Case]] = &[];
