//! Runs that do not answer: their monitor is stopped, as by Ctrl-Z, or lives and says nothing. That
//! is never taken for the end of a run.

use super::Begun;
use crate::failure::Failed;
use monitor::visible;
use proc::{Proc, none_if_gone};
use std::time::{Duration, SystemTime};

/// How long a stopped monitor may take to answer: it may have been continued since it was looked
/// at.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// A run that goes on, as far as anybody knows, and does not answer.
pub(crate) struct Unheard {
    pub(crate) id: String,
    /// Its monitor.
    pub(crate) pid: u32,
    /// Its monitor is stopped; else it does not answer, and why is not known.
    pub(crate) is_stopped: bool,
    /// What it wrote down when it began, where it could.
    pub(crate) begun: Option<Begun>,
}

impl Unheard {
    pub(super) fn of(id: String, pid: u32, is_stopped: bool) -> Self {
        let begun = Begun::all().into_iter().find(|it| it.status.id == id);
        Self { id, pid, is_stopped, begun }
    }

    pub(crate) fn name(&self) -> Option<&str> {
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
        let how = if self.is_stopped { "stopped" } else { "does not answer" };
        format!("{} ({name}{how})", self.id)
    }

    /// How it goes on, or ends.
    pub(crate) fn remedy(&self) -> String {
        match self.is_stopped {
            true => format!("`fg` in its shell, or `kill -CONT {}`, continues it", self.pid),
            false => ending(self.pid),
        }
    }

    /// Why it was not asked.
    pub(crate) fn refusal(&self) -> Failed {
        let (id, remedy) = (&self.id, self.remedy());
        Failed(match self.is_stopped {
            true => format!(
                "run {id} is stopped with its monitor, and so can be neither asked nor changed: {remedy}; {}",
                ending(self.pid)
            ),
            false => format!(
                "run {id} does not answer, and nothing was changed in it; its monitor, process {}, goes on: {remedy}",
                self.pid
            ),
        })
    }
}

/// How a run ends of which nobody hears.
pub(super) fn ending(pid: u32) -> String {
    format!("`kill -KILL {pid}` ends it")
}

/// Whether a process is stopped.
pub(super) fn is_stopped(pid: u32) -> bool {
    let stat = Proc::open().and_then(|proc| proc.stat(pid));
    stat.is_ok_and(|stat| matches!(stat.state, 'T' | 't'))
}

/// Whether a process has not ended; yes when in doubt.
pub(super) fn lives(pid: u32) -> bool {
    let state = Proc::open().and_then(|proc| none_if_gone(proc.stat(pid).map(|it| Some(it.state))));
    !matches!(state, Ok(None | Some('Z' | 'X')))
}
