//! Calls on the program's behalf that wait for a peer: opening a FIFO, connecting, sending to a
//! queue that is full.
//!
//! A thread in a trapped call hears of deadly signals only, and of none once it is dead. So whoever
//! waits in its name is told when it has a signal to handle, or is gone. Policy may change
//! meanwhile.

use crate::{
    answer::{ANEW, RESTART},
    caller::Caller,
    sys::{notify::Listener, thread::Interruptible},
};
use proc::{ProcessTree, Signals};
use rustix::io::{Errno, Result};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    thread::ThreadId,
};

/// Calls that can wait at once, each with a thread of the monitor. More fail with `ENFILE`, so that
/// threads are left for everything else.
const MOST: usize = 128;

/// The calls that wait, and who ends their waits.
#[derive(Debug, Default)]
pub struct PendingCalls {
    /// By notification.
    waits: Mutex<HashMap<u64, PendingCall>>,
    /// The thread that looks whether callers have something else to do. Of a wait of its own,
    /// nobody would look.
    looks: OnceLock<ThreadId>,
}

#[derive(Clone, Copy, Debug)]
struct PendingCall {
    /// The thread of the sandbox.
    tid: u32,
    /// The thread of the monitor.
    thread: Interruptible,
    /// Policy changes, and the thread of the sandbox is held, or its process is stopped: it is to
    /// make the call anew.
    again: bool,
}

impl PendingCalls {
    /// Makes a call until it is done, or its caller has something else to do. `ENFILE` where there
    /// is no thread for it: the calling one is that of [`PendingCalls::interrupt`].
    pub fn until_done<T>(
        &self,
        caller: Caller<'_>,
        listener: &Listener,
        make: impl Fn() -> Result<T>,
    ) -> Result<T> {
        if self.looks.get() == Some(&std::thread::current().id()) {
            return Err(Errno::NFILE);
        }
        let call = caller.call;
        let wait = PendingCall { tid: call.tid, thread: Interruptible::current(), again: false };
        {
            let mut waits = self.lock();
            if waits.len() >= MOST {
                return Err(Errno::NFILE);
            }
            waits.insert(call.id, wait);
        }
        let made = loop {
            match make() {
                Err(Errno::INTR) => {
                    let again = self.lock().get(&call.id).is_some_and(|wait| wait.again);
                    if again {
                        break Err(ANEW);
                    }
                    if let Some(errno) = interruption(listener, caller.tree, call.id, call.tid) {
                        break Err(errno);
                    }
                }
                result => break result,
            }
        };
        self.lock().remove(&call.id);
        made
    }

    /// Ends the waits of threads that the kernel stops as soon as they return from their call; they
    /// make it anew.
    pub fn repeat(&self, is_held: impl Fn(u32) -> bool) {
        for wait in self.lock().values_mut().filter(|wait| is_held(wait.tid)) {
            wait.again = true;
            wait.thread.interrupt();
        }
    }

    /// Ends the waits of callers that are gone, which nobody can hold; whether one of them has not
    /// ended yet, so that what it does could still come through.
    pub fn end_gone(&self, listener: &Listener) -> bool {
        let mut waits = self.lock();
        let gone = waits.iter_mut().filter(|(id, _)| !listener.is_valid(**id));
        let ended = gone.map(|(_, wait)| {
            wait.again = true;
            wait.thread.interrupt();
        });
        ended.count() > 0
    }

    /// Ends the waits of callers that have something else to do. One that is about to begin ends
    /// the next time. It is always the same thread that looks.
    pub fn interrupt(&self, listener: &Listener, tree: &ProcessTree) {
        self.looks.get_or_init(|| std::thread::current().id());
        let all: Vec<(u64, u32)> = self.lock().iter().map(|(id, wait)| (*id, wait.tid)).collect();
        let waiting: BTreeSet<u32> = all.iter().map(|(_, tid)| *tid).collect();
        for (id, tid) in all {
            let is_stopped = is_stopped(tree, tid, &waiting);
            // Held meanwhile: a thread that is done with this wait is interrupted in no other.
            let mut waits = self.lock();
            if let Some(wait) = waits.get_mut(&id)
                && (is_stopped || interruption(listener, tree, id, wait.tid).is_some())
            {
                wait.again |= is_stopped;
                wait.thread.interrupt();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, PendingCall>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the other threads of a caller's process are stopped by a signal, as by Ctrl-Z: the
/// process is so once none is left in a call.
fn is_stopped(tree: &ProcessTree, tid: u32, waiting: &BTreeSet<u32>) -> bool {
    let process = tree.proc.identity(tid).and_then(|it| tree.proc.threads(it.pid));
    let other = process.unwrap_or_default().into_iter().find(|it| !waiting.contains(it));
    other.is_some_and(|it| tree.proc.stat(it).is_ok_and(|stat| stat.state == 'T'))
}

/// Why a caller need not wait any longer: it is gone, or has a signal to handle.
fn interruption(listener: &Listener, tree: &ProcessTree, id: u64, tid: u32) -> Option<Errno> {
    if !listener.is_valid(id) {
        return Some(Errno::SRCH);
    }
    due(tree.proc.status(tid).ok()?.signals()?)
}

/// What a call returns for the signals that wait. Those of the process may be for another of its
/// threads: without a signal for this one, the kernel would hand [`RESTART`] through to the
/// program.
fn due(signals: Signals) -> Option<Errno> {
    match (signals.own, signals.shared, signals.threads) {
        (false, false, _) => None,
        (false, true, 2..) => Some(Errno::INTR),
        _ => Some(RESTART),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::notify::Notification;
    use std::cell::OnceCell;

    #[test]
    fn who_ends_waits_waits_for_nothing() {
        let listener = Listener::new(std::fs::File::open("/dev/null").unwrap().into());
        let proc = std::fs::File::open("/proc").unwrap();
        let tree = ProcessTree::new(proc.into(), std::process::id(), None).unwrap();
        let call = Notification { id: 1, tid: 1, nr: 0, args: [0; 6] };
        let make = |waits: &PendingCalls| {
            let (who, cwd) = (OnceCell::new(), OnceCell::new());
            let (listener, tree, links) = (&listener, &tree, None);
            let caller = Caller { listener, tree, call: &call, who: &who, cwd: &cwd, links };
            waits.until_done(caller, listener, || Ok(()))
        };
        let waits = PendingCalls::default();
        assert_eq!(make(&waits), Ok(()));
        waits.interrupt(&listener, &tree);
        assert_eq!(make(&waits), Err(Errno::NFILE));
        let other = std::thread::scope(|scope| scope.spawn(|| make(&waits)).join().unwrap());
        assert_eq!(other, Ok(()));
    }

    #[test]
    fn only_a_signal_that_is_heard_ends_a_wait() {
        let restart = Some(RESTART);
        for (threads, own, shared, want) in [
            (1, false, false, None),
            (1, false, true, restart),
            (1, true, false, restart),
            (2, false, true, Some(Errno::INTR)),
            (2, true, false, restart),
        ] {
            assert_eq!(due(Signals { own, shared, threads }), want);
        }
    }
}
