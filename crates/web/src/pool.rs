//! A worker's own instances of plugins.

use crate::plugins::{Binding, Plugins};
use foldhash::HashMap;
use plugin_host::{CallFailure, Session};
use std::{collections::VecDeque, sync::Arc};

/// Instances that all workers together keep ready. The host has room for more, for those under way.
const IDLE: usize = 64;

/// Idle instances of one worker.
pub(crate) struct Pool {
    idle: HashMap<u32, Vec<Session>>,
    /// The plugins whose instances came back, longest ago first; one entry for each instance.
    order: VecDeque<u32>,
    most: usize,
}

/// An instance in use.
pub(crate) struct Lease {
    pub(crate) session: Session,
    pub(crate) binding: Arc<Binding>,
}

impl Pool {
    pub(crate) fn new(workers: usize) -> Self {
        let (idle, order) = (HashMap::default(), VecDeque::new());
        Self { idle, order, most: (IDLE / workers.max(1)).max(1) }
    }

    /// An instance of a plugin's newest version.
    pub(crate) fn take(
        &mut self,
        plugins: &Plugins,
        binding: &Arc<Binding>,
    ) -> Result<Lease, CallFailure> {
        let kept = self.idle.get_mut(&binding.id);
        let kept = kept.and_then(|kept| {
            kept.retain(Session::is_current);
            kept.pop()
        });
        if let Some(session) = kept {
            return Ok(Lease { session, binding: Arc::clone(binding) });
        }
        let session = match plugins.host.session(&binding.name) {
            Err(CallFailure::NoRoom(_)) => {
                // Others' instances wait for calls: this one has come.
                self.clear();
                plugins.host.session(&binding.name)?
            }
            session => session?,
        };
        Ok(Lease { session, binding: Arc::clone(binding) })
    }

    /// Takes an instance back.
    pub(crate) fn give_back(&mut self, lease: Lease) {
        if !lease.session.is_current() {
            return;
        }
        let id = lease.binding.id;
        self.idle.entry(id).or_default().push(lease.session);
        // Once for each time it came back is enough: what is there no more is passed over.
        if self.order.back() != Some(&id) {
            self.order.push_back(id);
        }
        if self.order.len() > 4 * self.most || self.idle.len() > self.most {
            self.shrink();
        }
    }

    /// Lets go of what was used longest ago.
    #[cold]
    fn shrink(&mut self) {
        while self.idle.len() > self.most || self.order.len() > 2 * self.most {
            let Some(oldest) = self.order.pop_front() else { break };
            if !self.order.contains(&oldest) {
                self.idle.remove(&oldest);
            }
        }
        let most = self.most;
        self.idle.values_mut().for_each(|kept| kept.truncate(most));
    }

    /// Counts what was done, and lets go of old versions.
    pub(crate) fn settle(&mut self) {
        for kept in self.idle.values_mut() {
            kept.retain(Session::is_current);
            kept.iter_mut().for_each(|session| session.settle(std::time::Duration::ZERO));
        }
        self.idle.retain(|_, kept| !kept.is_empty());
    }

    /// Lets go of everything.
    pub(crate) fn clear(&mut self) {
        self.idle.clear();
        self.order.clear();
    }
}
