//! Calls on the program's behalf that wait for a peer: opening a FIFO, connecting, sending to a queue that is full.
//!
//! A thread in a trapped call hears of deadly signals only, and of none once it is dead. So whoever waits in its name is
//! told when it has a signal to handle, or is gone. Policy may change meanwhile.

use crate::{
    caller::read_text,
    gate::{Asker, Gate},
    sys::thread::Interruptible,
};
use rustix::io::{Errno, Result};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Calls that can wait at once, each with a thread of the monitor. More fail with `ENFILE`, so that threads are left for
/// everything else.
const MOST: usize = 128;

/// `ERESTARTSYS` of `linux/errno.h`: with a signal pending, the kernel makes of it a restart or `EINTR`, as the
/// program has asked for with `SA_RESTART`.
const RESTART: i32 = 512;

/// `ERESTARTNOINTR` of `linux/errno.h`: the call is made anew, whatever signal is pending.
const AGAIN: Errno = Errno::from_raw_os_error(513);

/// The calls that wait, by notification.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<HashMap<u64, Wait>>);

#[derive(Clone, Copy, Debug)]
struct Wait {
    /// The thread of the sandbox.
    tid: u32,
    /// The thread of the monitor.
    thread: Interruptible,
    /// Policy changes, and the thread of the sandbox is held: it is to make the call anew.
    again: bool,
}

impl Waits {
    /// Makes a call until it is done, or its caller has something else to do; with its result, whether policy has changed
    /// since it was decided.
    pub(crate) fn during<T>(
        &self,
        asker: Asker<'_>,
        make: impl Fn() -> Result<T>,
    ) -> Result<(T, bool)> {
        asker.gate.passage.outside(asker.caller.call, || self.until_done(asker, make))
    }

    fn until_done<T>(&self, asker: Asker<'_>, make: impl Fn() -> Result<T>) -> Result<T> {
        let call = asker.caller.call;
        let wait = Wait { tid: call.tid, thread: Interruptible::current(), again: false };
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
                        break Err(AGAIN);
                    }
                    if let Some(errno) = interruption(asker.gate, call.id, call.tid) {
                        break Err(errno);
                    }
                }
                result => break result,
            }
        };
        self.lock().remove(&call.id);
        made
    }

    /// Ends the waits of threads that the kernel stops as soon as they return from their call; they make it anew.
    pub(crate) fn repeat(&self, is_held: impl Fn(u32) -> bool) {
        for wait in self.lock().values_mut().filter(|wait| is_held(wait.tid)) {
            wait.again = true;
            wait.thread.interrupt();
        }
    }

    /// Ends the waits of callers that have something else to do. One that is about to begin ends the next time.
    pub(crate) fn interrupt(&self, gate: &Gate) {
        let ids: Vec<u64> = self.lock().keys().copied().collect();
        for id in ids {
            // Held meanwhile: a thread that is done with this wait is interrupted in no other.
            let waits = self.lock();
            if let Some(wait) = waits.get(&id)
                && interruption(gate, id, wait.tid).is_some()
            {
                wait.thread.interrupt();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Wait>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a caller need not wait any longer: it is gone, or has a signal to handle.
fn interruption(gate: &Gate, id: u64, tid: u32) -> Option<Errno> {
    if !gate.listener.is_valid(id) {
        return Some(Errno::SRCH);
    }
    due(&read_text(&gate.view, &format!("{tid}/status")).ok()?)
}

/// What a call returns for the signals in `/proc/TID/status`. Those of the process may be for another of its threads:
/// without a signal for this one, the kernel would hand [`RESTART`] through to the program.
fn due(status: &str) -> Option<Errno> {
    let field = |name: &str| {
        let text = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"))?;
        u64::from_str_radix(text, 16).ok()
    };
    let heard = !field("SigBlk")? & !field("SigIgn")?;
    let (own, shared) = (field("SigPnd")? & heard, field("ShdPnd")? & heard);
    match (own, shared, field("Threads")?) {
        (0, 0, _) => None,
        (0, _, 2..) => Some(Errno::INTR),
        _ => Some(Errno::from_raw_os_error(RESTART)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_signal_that_is_heard_ends_a_wait() {
        let status = |threads, own, shared, blocked, ignored| {
            let line = |name, bits: u64| format!("{name}:\t{bits:016x}\n");
            let sets =
                [("SigPnd", own), ("ShdPnd", shared), ("SigBlk", blocked), ("SigIgn", ignored)];
            let sets: String = sets.map(|(name, bits)| line(name, bits)).concat();
            due(&format!("Name:\tcat\nThreads:\t{threads}\nSigQ:\t1/9\n{sets}"))
        };
        let restart = Some(Errno::from_raw_os_error(RESTART));
        for (threads, own, shared, blocked, ignored, want) in [
            (1, 0, 0, 0, 0, None),
            (1, 0, 0x2000, 0, 0, restart),
            (1, 0, 0x2000, 0x2000, 0, None),
            (1, 0x2000, 0, 0, 0x2000, None),
            (2, 0, 0x2000, 0, 0, Some(Errno::INTR)),
            (2, 0x2000, 0, 0, 0, restart),
        ] {
            assert_eq!(status(threads, own, shared, blocked, ignored), want);
        }
    }
}
