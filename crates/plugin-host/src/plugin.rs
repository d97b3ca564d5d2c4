//! A plugin: its label, its versions, its idle instances, its numbers.

use crate::{
    check::Gate,
    instance::{CallFailure, Instance, Running},
    limits::Limits,
    state::State,
};
use avc::Hint;
use flask::{AccessVector, Sid};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};
use wasmtime::{Engine, InstancePre};

/// Instances that wait for the next call; more are thrown away.
const MAX_IDLE: usize = 16;
/// Lines of log that are kept.
const MAX_LINES: usize = 256;

/// What all versions and instances of a plugin share.
pub(crate) struct Plugin {
    pub(crate) name: String,
    pub(crate) sid: Sid,
    pub(crate) limits: Limits,
    pub(crate) gate: Arc<Gate>,
    pub(crate) state: Arc<State>,
    log: Mutex<VecDeque<String>>,
}

impl Plugin {
    pub(crate) fn new(
        name: String,
        sid: Sid,
        limits: Limits,
        gate: Arc<Gate>,
        state: Arc<State>,
    ) -> Self {
        Self { name, sid, limits, gate, state, log: Mutex::default() }
    }

    /// Whether the plugin may use `requested` on itself.
    pub(crate) fn may(&self, requested: AccessVector, hint: &Hint) -> bool {
        self.gate.allows(&self.name, self.sid, self.sid, requested, hint)
    }

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
    engine: Engine,
    pre: InstancePre<Running>,
    idle: Mutex<Vec<Instance>>,
    faults_in_a_row: AtomicU32,
    pub(crate) host_hint: Hint,
    pub(crate) number: u64,
}

impl Version {
    pub(crate) fn new(
        plugin: Arc<Plugin>,
        engine: Engine,
        pre: InstancePre<Running>,
        number: u64,
    ) -> Self {
        let (idle, faults_in_a_row) = (Mutex::default(), AtomicU32::new(0));
        Self { plugin, engine, pre, idle, faults_in_a_row, host_hint: Hint::default(), number }
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        self.faults_in_a_row.load(Relaxed) >= self.plugin.limits.faults
    }

    pub(crate) fn call(&self, request: &[u8]) -> Result<Vec<u8>, CallFailure> {
        if self.is_quarantined() {
            return Err(CallFailure::Quarantined);
        }
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut instance = match idle {
            Some(instance) => instance,
            None => self.instantiate()?,
        };
        let result = instance.call(request);
        match &result {
            Ok(_) => {
                self.faults_in_a_row.store(0, Relaxed);
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < MAX_IDLE {
                    idle.push(instance);
                }
            }
            // The host's lack of room is not the plugin's fault.
            Err(CallFailure::NoRoom(_)) => {}
            Err(_) => drop(self.faults_in_a_row.fetch_add(1, Relaxed)),
        }
        result
    }

    /// A fresh instance.
    pub(crate) fn instantiate(&self) -> Result<Instance, CallFailure> {
        Instance::new(&self.engine, &self.pre, &self.plugin)
    }
}

/// Counters of one plugin, over all its versions.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) calls: AtomicU64,
    pub(crate) faults: AtomicU64,
}

impl Counters {
    pub(crate) fn count(&self, failed: bool) {
        self.calls.fetch_add(1, Relaxed);
        if failed {
            self.faults.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn read(&self) -> PluginStats {
        PluginStats { calls: self.calls.load(Relaxed), faults: self.faults.load(Relaxed) }
    }
}

/// How a plugin has fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginStats {
    /// Calls that were begun.
    pub calls: u64,
    /// Calls that gave no reply.
    pub faults: u64,
}

/// What is known of a loaded plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginInfo {
    /// Its name.
    pub name: String,
    /// Its label.
    pub sid: Sid,
    /// 1 when loaded, one more with every replacement.
    pub version: u64,
    /// It is not called any more until it is replaced.
    pub quarantined: bool,
    /// How it has fared.
    pub stats: PluginStats,
}
