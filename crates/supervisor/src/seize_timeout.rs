//! How long seizing a thread takes, for who helps whoever does it.

use rustix::io::Result;
use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// No exec that nobody holds up takes longer on a machine that is not held up itself.
const PATIENCE: Duration = Duration::from_millis(100);

/// Sees to it that whoever seizes does not wait for ever.
#[derive(Debug, Default)]
pub struct SeizeTimeout {
    state: Mutex<Watched>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Watched {
    /// The process of which a thread is being seized, and since when.
    seizing: Option<(u32, Instant)>,
    /// Threads that were waited for in the place of whoever holds them.
    seen_off: Vec<u32>,
    when: When,
}

/// When somebody seizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum When {
    /// Not now.
    #[default]
    Later,
    Now,
    Never,
}

impl SeizeTimeout {
    /// Seizes a thread of `pid` by `seize`.
    pub(crate) fn seize(&self, pid: u32, seize: impl FnOnce() -> Result<()>) -> Result<()> {
        self.lock().seizing = Some((pid, Instant::now()));
        let seized = seize();
        self.lock().seizing = None;
        seized
    }

    /// The threads that have ended, and were waited for already.
    pub(crate) fn seen_off(&self) -> Vec<u32> {
        std::mem::take(&mut self.lock().seen_off)
    }

    /// Calls `help` with each process that is seized for too long, until [`SeizeTimeout::end`]; it
    /// says which threads it has seen off.
    pub(crate) fn watch(&self, help: impl Fn(u32) -> Vec<u32>) {
        let mut watched = self.lock();
        while watched.when != When::Never {
            if watched.when == When::Later {
                watched = self.changed.wait(watched).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let late = watched.seizing.filter(|(_, since)| since.elapsed() > PATIENCE);
            if let Some((pid, _)) = late {
                drop(watched);
                let seen_off = help(pid);
                watched = self.lock();
                watched.seen_off.extend(seen_off);
            }
            let waited = self.changed.wait_timeout(watched, PATIENCE / 4);
            watched = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Somebody seizes while `stop` runs; one at a time does.
    pub(crate) fn during<T>(&self, stop: impl FnOnce() -> T) -> T {
        self.set(When::Now);
        let stopped = stop();
        self.set(When::Later);
        stopped
    }

    /// Nobody seizes any more.
    pub fn end(&self) {
        self.set(When::Never);
    }

    fn set(&self, when: When) {
        self.lock().when = when;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
