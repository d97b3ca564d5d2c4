//! Runs whose monitor is stopped, as by Ctrl-Z: nothing answers for them until they are continued.

use super::Begun;
use crate::failure::Failed;
use monitor::visible;
use proc::Proc;
use std::time::{Duration, SystemTime};

/// How long a stopped monitor may take to answer: it may have been continued since it was looked
/// at.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// A run that is stopped.
pub(crate) struct Stopped {
    pub(crate) id: String,
    /// Its monitor.
    pub(crate) pid: u32,
    /// What it wrote down when it began, where it could.
    pub(crate) begun: Option<Begun>,
}

impl Stopped {
    pub(super) fn of(id: String, pid: u32) -> Self {
        let begun = Begun::all().into_iter().find(|it| it.status.id == id);
        Self { id, pid, begun }
    }

    fn name(&self) -> Option<&str> {
        self.begun.as_ref()?.status.name.as_deref()
    }

    pub(crate) fn started(&self) -> Option<SystemTime> {
        Some(self.begun.as_ref()?.status.started)
    }

    /// Whether this is its id or its name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.id == name || self.name() == Some(name)
    }

    /// Its id and its name.
    pub(super) fn called(&self) -> String {
        let name = self.name().map_or(String::new(), |name| format!("{}, ", visible(name)));
        format!("{} ({name}stopped)", self.id)
    }

    /// How it goes on.
    pub(crate) fn remedy(&self) -> String {
        format!("`fg` in its shell, or `kill -CONT {}`, continues it", self.pid)
    }

    /// Why it was not asked.
    pub(super) fn refusal(&self) -> Failed {
        let id = &self.id;
        Failed(format!(
            "run {id} is stopped with its monitor, and so can be neither asked nor changed: {}; `kill -KILL {}` ends it",
            self.remedy(),
            self.pid
        ))
    }
}

/// Whether a process is stopped.
pub(super) fn is_stopped(pid: u32) -> bool {
    let stat = Proc::open().and_then(|proc| proc.stat(pid));
    stat.is_ok_and(|stat| matches!(stat.state, 'T' | 't'))
}
