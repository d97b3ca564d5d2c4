//! A call with its subject, at the process object manager.

use super::ProcessManager;
use mediation::call::Asker;
use std::ops::Deref;

/// A call with its subject, at the process object manager.
#[derive(Clone, Copy)]
pub(crate) struct ProcessAsker<'a> {
    pub(crate) asker: Asker<'a>,
    pub(crate) processes: &'a ProcessManager,
}

impl<'a> Deref for ProcessAsker<'a> {
    type Target = Asker<'a>;

    fn deref(&self) -> &Asker<'a> {
        &self.asker
    }
}
