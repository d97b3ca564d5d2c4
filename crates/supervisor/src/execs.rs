//! Execs that threads of the gate wait for.
//!
//! An exec waits for the other threads of its process to end, and whoever traces one of those
//! inside decides when. So a process whose exec takes long, and one of whose threads is traced
//! there, ends; and if even that takes long, as its tracer has not heard of it, nobody waits.

use crate::sys::thread::Interruptible;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::{Duration, Instant},
};

/// No exec that nobody holds up takes longer on a machine that is not held up itself.
const PATIENCE: Duration = Duration::from_millis(100);

/// The execs that are waited for, by the thread that executes.
#[derive(Debug, Default)]
pub struct Execs {
    awaited: Mutex<HashMap<u32, Exec>>,
    turn: RwLock<()>,
}

#[derive(Clone, Copy, Debug)]
struct Exec {
    pid: u32,
    since: Instant,
    /// The thread of the gate.
    thread: Interruptible,
    /// The process was ended.
    is_ended: bool,
}

/// An exec that the calling thread waits for.
pub struct Awaited<'a> {
    execs: &'a Execs,
    tid: u32,
}

impl Execs {
    /// Holds up [`Self::alone`] until the value is dropped: the calling thread traces somebody.
    pub fn turn(&self) -> RwLockReadGuard<'_, ()> {
        self.turn.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until the value is dropped, no other thread of the gate traces anybody, who could not be
    /// traced by the calling thread then.
    pub fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.turn.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calling thread waits for an exec of thread `tid` of `pid` until the value is dropped.
    pub fn wait(&self, pid: u32, tid: u32) -> Awaited<'_> {
        let (since, thread) = (Instant::now(), Interruptible::current());
        self.lock().insert(tid, Exec { pid, since, thread, is_ended: false });
        Awaited { execs: self, tid }
    }

    /// Has `end` end the processes whose exec `is_held_up`, and nobody wait for them.
    pub(crate) fn end_held_up(&self, is_held_up: impl Fn(u32) -> bool, end: impl Fn(u32)) {
        let late: Vec<(u32, u32)> = {
            let execs = self.lock();
            let late = execs.iter().filter(|(_, exec)| exec.since.elapsed() > PATIENCE);
            late.map(|(tid, exec)| (*tid, exec.pid)).collect()
        };
        for (tid, pid) in late {
            let is_held_up = is_held_up(pid);
            // Held meanwhile: a thread that waits no more is interrupted in nothing else.
            let mut execs = self.lock();
            let Some(exec) = execs.get_mut(&tid).filter(|exec| exec.pid == pid) else { continue };
            if is_held_up || exec.is_ended {
                end(pid);
                exec.is_ended = true;
                // One that is about to begin to wait is interrupted the next time.
                exec.thread.interrupt();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Exec>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Awaited<'_> {
    /// Whether the process was ended, as somebody holds its exec up.
    pub fn is_ended(&self) -> bool {
        self.execs.lock().get(&self.tid).is_some_and(|exec| exec.is_ended)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.execs.lock().remove(&self.tid);
    }
}
