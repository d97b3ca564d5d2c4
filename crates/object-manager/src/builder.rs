//! What a manager is made of.

use crate::{
    Daemon, Manager, OpenError, PolicyFault, Record, Seqno,
    hold::{self, Hold},
    parts::{Hooks, Parts},
    source::{self, Source},
    status::Status,
};
use avc::Avc;
use flask::Classes;
use security_server::{Server, policy::HandleUnknown};
use std::{path::PathBuf, sync::Arc};

/// What to open; begins with [`Manager::builder`].
#[must_use]
pub struct Builder {
    name: String,
    sources: Vec<Source>,
    classes: Vec<(String, Vec<String>)>,
    daemon: Daemon,
    entries: Option<usize>,
    permissive: bool,
    hooks: Hooks,
}

impl Builder {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            sources: Vec::new(),
            classes: Vec::new(),
            daemon: Daemon::default(),
            entries: None,
            permissive: false,
            hooks: Hooks::default(),
        }
    }

    /// Adds a file: CIL, or a binary policy, which is then the only one.
    pub fn policy_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.sources.push(Source::File(path.into()));
        self
    }

    /// Adds a text in CIL; `name` is for messages.
    pub fn policy_text(mut self, name: &str, text: &str) -> Self {
        self.sources.push(Source::Text(name.to_owned(), text.to_owned()));
        self
    }

    /// Adds a class of the program's own: its name in policies, and those of its permissions, in
    /// the order of the program's bits.
    pub fn class<P: AsRef<str>>(
        mut self,
        name: &str,
        permissions: impl IntoIterator<Item = P>,
    ) -> Self {
        let permissions = permissions.into_iter().map(|name| name.as_ref().to_owned()).collect();
        self.classes.push((name.to_owned(), permissions));
        self
    }

    /// Says whose security server decides.
    pub fn daemon(self, daemon: Daemon) -> Self {
        Self { daemon, ..self }
    }

    /// Room for so many answers in the cache, instead of 4,096.
    pub fn entries(self, entries: usize) -> Self {
        Self { entries: Some(entries), ..self }
    }

    /// Begins without enforcing: what is missing is put on record, and granted. No answer is a
    /// denial nevertheless.
    pub fn permissive(self) -> Self {
        Self { permissive: true, ..self }
    }

    /// Calls this for each decision that policy wants on record, in the thread that asked, before
    /// it learns of the decision.
    pub fn on_audit(mut self, audit: impl Fn(&Record) + Send + Sync + 'static) -> Self {
        self.hooks.audit = Some(Box::new(audit));
        self
    }

    /// Calls this when another policy, or another boolean, is in force, and before whoever changed
    /// it learns that the change is complete. May be called by a thread of the manager's own.
    pub fn on_change(mut self, change: impl Fn(Seqno) + Send + Sync + 'static) -> Self {
        self.hooks.change = Some(Box::new(change));
        self
    }

    /// Opens it.
    ///
    /// # Errors
    ///
    /// [`OpenError`], which says what is wrong with policy or classes, and where.
    pub fn open(self) -> Result<Manager, OpenError> {
        let classes = Classes::new(self.classes.iter().map(|(name, p)| (name, p)))?;
        let read = source::read(&self.sources)?;
        let deny_unknown = read.policy.handle_unknown != HandleUnknown::Allow;
        // Here in any case: what is wrong is found before the daemon is asked.
        let own = Server::with_classes(read.policy, classes.clone()).map_err(PolicyFault::from)?;
        let lacking = own.lacking_own();
        let sent = daemon_client::Policy { files: read.files, classes: self.classes };
        let (hold, spool) = match self.daemon {
            Daemon::No => (Hold::Own(Arc::new(own)), None),
            wanted => hold::register(wanted, &self.name, &sent)?.map_or_else(
                || (Hold::Own(Arc::new(own)), None),
                |(hold, spool)| (hold, Some(spool)),
            ),
        };
        let avc = match self.entries {
            Some(entries) => Avc::with_capacity(hold.server(), entries),
            None => Avc::new(hold.server()),
        };
        let status = Status::new(!self.permissive, deny_unknown);
        let parts = Parts { avc, classes, status, lacking, hooks: self.hooks };
        Ok(Manager::begin(parts, hold, sent.classes, spool)?)
    }
}
