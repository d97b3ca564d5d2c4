//! One version of a plugin: its code, and the instances of it that wait for a call.

use crate::{
    call_failure::CallFailure,
    compile::Code,
    instance::Instance,
    plugin::Plugin,
    quota::{Permit, Quota},
    suspects::Suspects,
    target::Target,
};
use avc::Hint;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
};

/// Instances that wait for the next call, and the memory that they may have together. What is more
/// is thrown away.
const MAX_IDLE: usize = 16;
const MAX_IDLE_BYTES: usize = 128 << 20;

/// Code of one version. Calls that have begun on it end on it.
pub(crate) struct Version {
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) target: Target,
    pub(crate) number: u64,
    pub(crate) host_hint: Hint,
    code: Code,
    idle: Mutex<Vec<(Instance, Permit)>>,
    idle_quota: Arc<Quota>,
    faults_in_a_row: AtomicU32,
    /// What calls by sessions that say what they are on have failed on.
    pub(crate) suspects: Suspects,
    /// It has failed too often. That stays, whatever calls that still run come to.
    quarantined: AtomicBool,
}

impl Version {
    pub(crate) fn new(
        plugin: Arc<Plugin>,
        code: Code,
        (target, number): (Target, u64),
        idle_quota: &Arc<Quota>,
    ) -> Self {
        let (idle, idle_quota) = (Mutex::default(), Arc::clone(idle_quota));
        let (host_hint, faults_in_a_row) = (Hint::default(), AtomicU32::new(0));
        let quarantined = AtomicBool::new(plugin.limits.faults == 0);
        Self {
            plugin,
            target,
            number,
            host_hint,
            code,
            idle,
            idle_quota,
            faults_in_a_row,
            suspects: Suspects::default(),
            quarantined,
        }
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        self.quarantined.load(Relaxed)
    }

    /// An instance for one call, or for a session.
    pub(crate) fn lease(&self) -> Result<Instance, CallFailure> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.code.instantiate(&self.plugin), |(instance, _)| Ok(instance))
    }

    /// Takes an instance back whose last call went well.
    pub(crate) fn give_back(&self, mut instance: Instance) {
        instance.settle();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let others = idle.iter().map(|(instance, _)| instance.memory_bytes()).sum::<usize>();
        if idle.len() < MAX_IDLE
            && others + instance.memory_bytes() <= MAX_IDLE_BYTES
            && let Some(permit) = self.idle_quota.take()
        {
            idle.push((instance, permit));
            return;
        }
        // Taking an instance down takes longer than others should wait.
        drop(idle);
    }

    /// Takes note of a call that gave a reply.
    #[inline]
    pub(crate) fn note_reply(&self) {
        if self.faults_in_a_row.load(Relaxed) != 0 {
            self.faults_in_a_row.store(0, Relaxed);
        }
    }

    /// Takes note of a call that failed.
    #[cold]
    pub(crate) fn note_failure(&self, failure: &CallFailure) {
        if failure.is_the_plugins() {
            let before = self.faults_in_a_row.fetch_add(1, Relaxed);
            if before.saturating_add(1) >= self.plugin.limits.faults {
                self.quarantined.store(true, Relaxed);
            }
        }
    }

    /// A fresh instance, thrown away: what instantiation costs.
    pub(crate) fn instantiate(&self) -> Result<(), CallFailure> {
        self.code.instantiate(&self.plugin).map(drop)
    }
}
