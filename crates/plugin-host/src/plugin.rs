//! A plugin: its label, its limits, its numbers.

use crate::{
    access_check::AccessCheck, limits::Limits, objects::Labels, state::State, target::Target,
};
use flask::Sid;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

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
    /// It is not called any more, at all or on something.
    pub quarantined: bool,
    /// How it has fared.
    pub stats: PluginStats,
}
