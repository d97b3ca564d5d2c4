//! Calls in a row.

use crate::{
    check::Gate,
    host::may_call,
    instance::{CallFailure, Instance},
    plugin::Version,
};
use flask::Sid;
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Instant,
};

/// An instance of one version of a plugin, for calls in a row by one caller. Requests are put into the plugin's
/// memory once, and replies are read where they lie. Every call is checked as any other.
///
/// It stays on its version when the plugin is replaced, and ends when the plugin is unloaded.
pub struct Session {
    gate: Arc<Gate>,
    own: Sid,
    version: Arc<Version>,
    instance: Option<Instance>,
    begun: Instant,
    calls: u64,
    faults: u64,
}

impl Session {
    pub(crate) fn new(gate: Arc<Gate>, own: Sid, version: Arc<Version>, made: Instance) -> Self {
        let (instance, begun) = (Some(made), Instant::now());
        Self { gate, own, version, instance, begun, calls: 0, faults: 0 }
    }

    /// Puts `request` into the plugin's memory, for all calls until the next.
    ///
    /// # Errors
    ///
    /// [`CallFailure::NoRoom`] when it does not fit.
    pub fn fill(&mut self, request: &[u8]) -> Result<(), CallFailure> {
        self.instance()?.fill(request)
    }

    /// Calls the plugin on the request that is in its memory; the length of its reply.
    ///
    /// # Errors
    ///
    /// [`CallFailure`]. After a fault the session goes on with a fresh instance, which holds no request.
    #[inline]
    pub fn run(&mut self) -> Result<usize, CallFailure> {
        if self.version.plugin.shared.gone.load(Relaxed) {
            return Err(CallFailure::Unknown(self.version.plugin.name.clone()));
        }
        may_call(&self.gate, self.own, &self.version)?;
        self.calls += 1;
        let result = self.instance()?.run();
        self.version.note(&result);
        if result.is_err() {
            self.faults += 1;
            self.instance = None;
        }
        result
    }

    /// The first `len` bytes of the last reply.
    #[must_use]
    pub fn reply(&self, len: usize) -> &[u8] {
        self.instance.as_ref().map_or(&[], |instance| instance.reply(len))
    }

    fn instance(&mut self) -> Result<&mut Instance, CallFailure> {
        let instance = match self.instance.take() {
            Some(instance) => instance,
            None => self.version.lease()?,
        };
        Ok(self.instance.insert(instance))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let counters = &self.version.plugin.shared.counters;
        counters.count(self.calls, self.faults, self.begun.elapsed());
        if let Some(instance) = self.instance.take() {
            self.version.give_back(instance);
        }
    }
}
