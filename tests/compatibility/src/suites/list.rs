//! What may differ in suites of others.

/// Cases that pass natively, and not under Dewar.
pub(crate) struct Known {
    pub(crate) suite: &'static str,
    /// The name of a case, or the beginning of names before a `*`.
    pub(crate) case: &'static str,
    /// Under `open`, too; else under `workspace` alone.
    pub(crate) in_open: bool,
    pub(crate) reason: &'static str,
}

/// All of them.
pub(crate) const KNOWN: &[Known] = &[];
