//! Which children of the calling process are orphans of its sandbox.

use crate::Proc;
use rustix::io::{Errno, Result};
use std::os::fd::AsFd;

/// Tells what a sandbox has left to the calling process from other children of it. It has those of
/// a script that became Dewar by exec; PID 1 of a container has whatever is left behind there.
#[derive(Clone, Debug)]
pub struct Orphans {
    /// How many seccomp filters the caller has. Who is inside has more, and can drop none.
    filters: u32,
    /// The children that were there before, each with the time of its start.
    others: Vec<(u32, u64)>,
}

impl Orphans {
    /// Call it before anything of the sandbox is born.
    ///
    /// # Errors
    ///
    /// What keeps the caller from looking at itself and its children.
    pub fn before_birth<Fd: AsFd>(proc: &Proc<Fd>) -> Result<Self> {
        let own = std::process::id();
        let filters = proc.status(own)?.filters().ok_or(Errno::NOSYS)?;
        let children = proc.children(own)?.into_iter();
        // One that has ended meanwhile leaves its number to others.
        let others = children.filter_map(|pid| Some((pid, proc.started(pid).ok()?))).collect();
        Ok(Self { filters, others })
    }

    /// Whether a child of the calling process is an orphan of its sandbox; no when in doubt.
    #[must_use]
    pub fn include<Fd: AsFd>(&self, proc: &Proc<Fd>, child: u32) -> bool {
        let filters = proc.status(child).ok().and_then(|status| status.filters());
        let is_other = |started| self.others.contains(&(child, started));
        filters.is_some_and(|it| it > self.filters)
            && proc.started(child).is_ok_and(|started| !is_other(started))
    }
}
