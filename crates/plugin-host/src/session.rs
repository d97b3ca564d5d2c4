//! Calls in a row.

use crate::{
    call_failure::CallFailure, grant_cache::GrantCache, instance::Instance, plugin::Shared,
    sys::Image, version::Version,
};
use flask::{Sid, perm::plugin};
use std::{
    hash::Hash,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Instant,
};

/// An instance of one version of a plugin, for calls in a row by one caller. Requests are put into
/// the plugin's memory once, and replies are read where they lie. Every call is checked as any
/// other.
///
/// It stays on its version when the plugin is replaced, and ends when the plugin is unloaded.
pub struct Session {
    /// What the host may do to the plugin.
    host: GrantCache,
    version: Arc<Version>,
    shared: Arc<Shared>,
    instance: Option<Instance>,
    begun: Instant,
    calls: u64,
    faults: u64,
}

impl Session {
    pub(crate) fn new(own: Sid, version: Arc<Version>, made: Instance) -> Self {
        let (instance, begun) = (Some(made), Instant::now());
        let host = GrantCache::new(own, &version.plugin);
        let shared = Arc::clone(&version.plugin.shared);
        Self { host, version, shared, instance, begun, calls: 0, faults: 0 }
    }

    /// Puts `request` into the plugin's memory, for all calls until the next.
    ///
    /// # Errors
    ///
    /// [`CallFailure::NoRoom`] when it does not fit.
    pub fn fill(&mut self, request: &[u8]) -> Result<(), CallFailure> {
        self.instance()?.fill(request)
    }

    /// Has the plugin find `image` as its request, for all calls until the next: isolated and
    /// native code without a copy, except modules of WebAssembly from elsewhere. The plugin cannot
    /// change it.
    ///
    /// # Errors
    ///
    /// [`CallFailure::NoRoom`] when it does not fit.
    pub fn view(&mut self, image: &Arc<Image>) -> Result<(), CallFailure> {
        self.instance()?.view(image)
    }

    /// Calls the plugin on the request that is in its memory; the length of its reply.
    ///
    /// # Errors
    ///
    /// [`CallFailure`]. After a fault the session goes on with a fresh instance, which holds no
    /// request.
    #[inline]
    pub fn run(&mut self) -> Result<usize, CallFailure> {
        match self.attempt()? {
            Ok(len) => {
                self.version.note_reply();
                Ok(len)
            }
            Err(failure) => {
                self.version.note_failure(&failure);
                Err(failure)
            }
        }
    }

    /// The same, for callers whose clients choose what the plugin is called on: a failure counts
    /// against calls on that `object` alone, and a quarantine ends after a minute. So no client can
    /// have the plugin quarantined for what others ask for.
    ///
    /// # Errors
    ///
    /// As for [`Session::run`].
    #[inline]
    pub fn run_on(&mut self, object: &impl Hash) -> Result<usize, CallFailure> {
        let most = self.version.plugin.limits.faults;
        let before = self.version.suspects.faults_on(object, most);
        let before = before.ok_or(CallFailure::Quarantined)?;
        let result = self.attempt()?;
        match &result {
            Ok(_) if before > 0 => self.version.suspects.forget(object),
            Err(failure) if failure.is_the_plugins() => {
                self.version.suspects.note_failure(object);
            }
            _ => {}
        }
        result
    }

    /// One call; an error of the outer kind if it was not made.
    #[inline]
    fn attempt(&mut self) -> Result<Result<usize, CallFailure>, CallFailure> {
        if self.shared.gone.load(Relaxed)
            || !self.host.allows(&self.version.plugin, plugin::CALL)
            || self.version.is_quarantined()
        {
            return Err(self.refusal());
        }
        self.calls += 1;
        let result = match &mut self.instance {
            Some(instance) => instance.run(),
            None => self.instance()?.run(),
        };
        if result.is_err() {
            self.failed();
        }
        Ok(result)
    }

    #[cold]
    fn refusal(&self) -> CallFailure {
        if self.shared.gone.load(Relaxed) {
            return CallFailure::Unknown(self.version.plugin.name.clone());
        }
        if self.version.is_quarantined() { CallFailure::Quarantined } else { CallFailure::Denied }
    }

    #[cold]
    fn failed(&mut self) {
        self.faults += 1;
        self.instance = None;
    }

    /// The first `len` bytes of the last reply.
    #[must_use]
    pub fn reply(&mut self, len: usize) -> &[u8] {
        self.instance.as_mut().map_or(&[], |instance| instance.reply(len))
    }

    /// `head`, and behind it the first `len` bytes of the last reply, in one piece, so that one
    /// call to the system sends both. `None` where that is not possible: when `head` exceeds 1 KiB,
    /// or the plugin runs in the kernel.
    pub fn reply_behind(&mut self, head: &[u8], len: usize) -> Option<&[u8]> {
        self.instance.as_mut()?.reply_behind(head, len)
    }

    /// Whether this is still the plugin's newest version, and the plugin is loaded.
    #[must_use]
    #[inline]
    pub fn is_current(&self) -> bool {
        !self.shared.gone.load(Relaxed) && self.shared.newest.load(Relaxed) == self.version.number
    }

    /// The version that it stays on.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.number
    }

    /// Counts what was done since the last time in the host's statistics, as the session's end
    /// does; of the time since then, `busy` was spent in calls.
    pub fn settle(&mut self, busy: std::time::Duration) {
        self.host.settle();
        if let Some(instance) = &mut self.instance {
            instance.settle();
        }
        self.shared.counters.count(self.calls, self.faults, busy);
        (self.calls, self.faults, self.begun) = (0, 0, Instant::now());
    }

    #[cold]
    fn instance(&mut self) -> Result<&mut Instance, CallFailure> {
        match &mut self.instance {
            Some(instance) => Ok(instance),
            none => Ok(none.insert(self.version.lease()?)),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.host.settle();
        self.shared.counters.count(self.calls, self.faults, self.begun.elapsed());
        if let Some(instance) = self.instance.take() {
            self.version.give_back(instance);
        }
    }
}
