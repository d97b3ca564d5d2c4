//! A plugin: its label, its versions, its idle instances, its numbers.

use crate::{
    access_check::AccessCheck,
    compile::Code,
    instance::{CallFailure, Instance},
    limits::Limits,
    objects::Labels,
    quota::{Permit, Quota},
    state::State,
    target::Target,
};
use avc::Hint;
use flask::Sid;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// Instances that wait for the next call, and the memory that they may have together. What is more
/// is thrown away.
const MAX_IDLE: usize = 16;
const MAX_IDLE_BYTES: usize = 128 << 20;
/// Lines of log that are kept.
const MAX_LINES: usize = 256;

/// What all instances of a version of a plugin share.
pub(crate) struct Plugin {
    pub(crate) name: String,
    pub(crate) sid: Sid,
    pub(crate) limits: Limits,
    pub(crate) access: Arc<AccessCheck>,
    pub(crate) labels: Arc<Labels>,
    pub(crate) shared: Arc<Shared>,
}

/// What all versions of a plugin share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) state: State,
    pub(crate) counters: Counters,
    /// It was unloaded: whoever still holds it does not call it any more.
    pub(crate) gone: AtomicBool,
    /// The number of the newest version.
    pub(crate) newest: AtomicU64,
    log: Mutex<VecDeque<String>>,
}

impl Plugin {
    /// Counts what was denied.
    #[inline]
    pub(crate) fn asked(&self, granted: bool) -> bool {
        if !granted {
            self.shared.counters.denials.fetch_add(1, Relaxed);
        }
        granted
    }
}

impl Shared {
    pub(crate) fn write_log(&self, text: &[u8]) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == MAX_LINES {
            log.pop_front();
        }
        log.push_back(String::from_utf8_lossy(text).into_owned());
    }

    pub(crate) fn log(&self) -> Vec<String> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().cloned().collect()
    }
}

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
    /// It has failed too often. That stays, whatever calls that still run come to.
    quarantined: AtomicBool,
}

impl Version {
    /// A version of which one instance was made, which shows that the interface is there.
    pub(crate) fn new(
        plugin: Arc<Plugin>,
        code: Code,
        (target, number): (Target, u64),
        idle_quota: &Arc<Quota>,
    ) -> Result<Self, CallFailure> {
        let first = code.instantiate(&plugin)?;
        let idle =
            Mutex::new(idle_quota.take().map(|permit| (first, permit)).into_iter().collect());
        let idle_quota = Arc::clone(idle_quota);
        let (host_hint, faults_in_a_row) = (Hint::default(), AtomicU32::new(0));
        let quarantined = AtomicBool::new(plugin.limits.faults == 0);
        Ok(Self {
            plugin,
            target,
            number,
            host_hint,
            code,
            idle,
            idle_quota,
            faults_in_a_row,
            quarantined,
        })
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
        // The host's lack of room is not the plugin's fault.
        if !matches!(failure, CallFailure::NoRoom(_) | CallFailure::Unavailable(_)) {
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

/// Counters of one plugin, over all its versions.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    calls: AtomicU64,
    faults: AtomicU64,
    denials: AtomicU64,
    nanos: AtomicU64,
}

impl Counters {
    pub(crate) fn count(&self, calls: u64, faults: u64, time: Duration) {
        self.calls.fetch_add(calls, Relaxed);
        self.faults.fetch_add(faults, Relaxed);
        self.nanos.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    pub(crate) fn read(&self) -> PluginStats {
        PluginStats {
            calls: self.calls.load(Relaxed),
            faults: self.faults.load(Relaxed),
            denials: self.denials.load(Relaxed),
            time: Duration::from_nanos(self.nanos.load(Relaxed)),
        }
    }
}

/// How a plugin has fared, over all its versions. Calls of a [`Session`](crate::Session) count when
/// it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginStats {
    /// Calls that were begun.
    pub calls: u64,
    /// Calls that gave no reply.
    pub faults: u64,
    /// Permissions that it asked for and was denied.
    pub denials: u64,
    /// Time in calls, and in sessions from their first moment to their last.
    pub time: Duration,
}

/// What is known of a loaded plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginInfo {
    /// Its name.
    pub name: String,
    /// Its label.
    pub sid: Sid,
    /// Where its code runs.
    pub target: Target,
    /// 1 when loaded, one more with every replacement.
    pub version: u64,
    /// It is not called any more until it is replaced.
    pub quarantined: bool,
    /// How it has fared.
    pub stats: PluginStats,
}
