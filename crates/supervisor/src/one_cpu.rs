//! Handing files over without leaving the processor, while one is opened right after the other.
//!
//! A caller that is given a descriptor is woken to take it, and the monitor waits until it has
//! (`SECCOMP_IOCTL_NOTIF_ADDFD` of seccomp_unotify(2)). Answers wake the caller on the processor of
//! the monitor (`SYNC_WAKE_UP`); this wakes each of the two on whatever processor is idle. In a
//! virtual machine that takes some 20 µs, twice for each file. A program that works between two
//! opens waits for the first only, and gains by running on another processor; one that opens files
//! in a row waits for both. So from its second file on, both are kept where they are
//! (docs/decisions/price.md).

use crate::{Listener, Notification};
use rustix::{
    io::Result,
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity},
};
use std::{
    cell::RefCell,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

/// Files are opened in a row if no more than this passes from one to the decision on the next.
const ROW: Duration = Duration::from_micros(40);

thread_local! {
    static ROW_HERE: RefCell<Row> = const { RefCell::new(Row { last: None, kept: None }) };
}

/// What the thread that answers has handed over.
struct Row {
    /// To which thread, and when.
    last: Option<(u32, Instant)>,
    /// Where it is kept, and could be before.
    kept: Option<(usize, CpuSet)>,
}

/// A caller that is kept on a processor while it waits.
struct Kept {
    caller: Pid,
    here: CpuSet,
    before: CpuSet,
}

/// Gives the caller a duplicate of `fd` at the lowest free number, which is returned.
pub(crate) fn give(
    listener: &Listener,
    call: &Notification,
    fd: BorrowedFd<'_>,
    cloexec: bool,
) -> Result<i32> {
    let kept = ROW_HERE.with_borrow_mut(|row| row.keep(call.tid));
    let given = listener.give_fd(call.id, fd, cloexec);
    if let Some(kept) = kept {
        kept.release();
    }
    ROW_HERE.with_borrow_mut(|row| row.last = Some((call.tid, Instant::now())));
    given
}

/// Lets this thread go wherever it could before, unless it goes on handing files to `caller`.
pub(crate) fn heard(caller: u32) {
    ROW_HERE.with_borrow_mut(|row| {
        if row.kept.is_some() && !row.goes_on(caller) {
            row.let_go();
        }
    });
}

impl Row {
    fn goes_on(&self, caller: u32) -> bool {
        self.last.is_some_and(|(last, at)| last == caller && at.elapsed() < ROW)
    }

    /// Keeps the caller, and this thread, on its processor for the next file in a row.
    fn keep(&mut self, caller: u32) -> Option<Kept> {
        if !self.goes_on(caller) {
            self.let_go();
            return None;
        }
        let cpu = sched_getcpu();
        let caller = Pid::from_raw(caller.cast_signed())?;
        let before = sched_getaffinity(Some(caller)).ok()?;
        // Its program wants it elsewhere, or there is nowhere else.
        if cpu >= CpuSet::MAX_CPU || !before.is_set(cpu) || before.count() < 2 {
            return None;
        }
        let mut here = CpuSet::new();
        here.set(cpu);
        if self.kept.as_ref().is_none_or(|(at, _)| *at != cpu) {
            self.let_go();
            let own = sched_getaffinity(None).ok()?;
            sched_setaffinity(None, &here).ok()?;
            self.kept = Some((cpu, own));
        }
        sched_setaffinity(Some(caller), &here).ok()?;
        Some(Kept { caller, here, before })
    }

    fn let_go(&mut self) {
        if let Some((_, own)) = self.kept.take() {
            // Else its processors are gone: the kernel has found others.
            let _ = sched_setaffinity(None, &own);
        }
    }
}

impl Kept {
    /// Lets the caller go where it could before, unless somebody has said meanwhile where it may
    /// be. Of one that has ended nothing is left to be done.
    fn release(self) {
        if sched_getaffinity(Some(self.caller)).is_ok_and(|now| now == self.here) {
            let _ = sched_setaffinity(Some(self.caller), &self.before);
        }
    }
}
