//! The domains that use files, and what each may do with them.

use flask::Sid;

/// Who uses files.
#[derive(Clone, Copy)]
pub(super) struct Actors<'a> {
    /// Domains whose processes make calls themselves.
    pub(super) own: &'a [Sid],
    /// Domains for which the monitor makes them, but for execution.
    pub(super) others: &'a [Sid],
}
