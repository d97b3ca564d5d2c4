//! How processes enter runs inside, and what is there for those that have.

use super::{
    ending,
    runs::{Inside, MOST_BYTES, MOST_LAYERS, lock},
};
use crate::{
    call::Asker,
    state::MonitorState,
    subject::{label_generation, label_of},
};
use flask::Sid;
use policy_stack::{LabelView, is_compound};
use rustix::io::{Errno, Result};
use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
};

/// Layers, and bytes of theirs, from which on those are looked for that no process is under: that
/// looks at all processes.
const MANY_LAYERS: usize = MOST_LAYERS / 2;
const MANY_BYTES: usize = MOST_BYTES / 2;

impl Inside {
    /// The domain that the caller enters by this exec, if it has asked for one.
    pub fn entered_by(&self, asker: Asker<'_>) -> Result<Option<Sid>> {
        if !self.waits.load(Ordering::Acquire) {
            return Ok(None);
        }
        let pid = asker.caller.identity()?.pid;
        let Some(pending) = lock(&self.pending).get(&pid).copied() else { return Ok(None) };
        // Else it is another process with its number.
        let is_same = label_generation(asker.state, pid)? == pending.generation;
        Ok(is_same.then_some(pending.sid))
    }

    /// A process has entered, whose program has not run yet: whatever comes of it ends with it.
    ///
    /// # Errors
    ///
    /// What keeps that from being seen to. The process must not go on.
    pub fn has_entered(self: &Arc<Self>, pid: u32) -> Result<()> {
        let entered = {
            let mut pending = lock(&self.pending);
            let entered = pending.remove(&pid).ok_or(Errno::SRCH)?;
            self.waits.store(!pending.is_empty(), Ordering::Release);
            entered
        };
        ending::end_with(self, pid, entered.layer)
    }

    /// Forgets the layers that no process is under, nor about to enter.
    pub(super) fn collect(&self, state: &MonitorState) {
        if self.stack.count() < MANY_LAYERS && self.stack.bytes() < MANY_BYTES {
            return;
        }
        // Who begins a layer meanwhile would lose it, and may take its time.
        let Ok(_next) = self.next.try_lock() else { return };
        let mut used: HashSet<u32> = HashSet::new();
        {
            let mut pending = lock(&self.pending);
            // Whoever was promised to run in there runs nothing elsewhere, however long it takes.
            pending.retain(|pid, it| label_generation(state, *pid) == Ok(it.generation));
            used.extend(pending.values().map(|it| it.layer));
            self.waits.store(!pending.is_empty(), Ordering::Release);
        }
        // Twice: a process that is born while the first list is made has a parent in it, or is in
        // the second.
        for _ in 0..2 {
            let Ok(pids) = state.targets.tree.proc.pids() else { return };
            for pid in pids.into_iter().filter(|pid| state.targets.tree.is_inside(*pid)) {
                let parts = label_of(state, pid).ok().and_then(|sid| self.stack.parts(sid));
                used.extend(parts.into_iter().flat_map(|it| it.inner).map(|(number, _)| number));
            }
        }
        self.stack.keep(&|number| used.contains(&number));
    }
}

impl Asker<'_> {
    /// Whether the subject is of a run inside.
    pub fn is_inside(&self) -> bool {
        is_compound(self.ssid)
    }

    /// The labels of files as the subject sees them.
    pub fn labels(&self) -> LabelView<'_> {
        LabelView::new(&self.state.labels, &self.state.inside.stack, self.ssid)
    }
}
