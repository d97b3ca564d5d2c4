//! Telling processes apart: from the moment on in which they can differ.

use crate::{
    call::{Answer, Asker, CallResult},
    state::MonitorState,
    subject::Processes,
};
use rustix::io::{Errno, Result};
use std::{
    sync::{TryLockError, atomic::Ordering},
    time::{Duration, Instant},
};
use supervisor::{Notification, Stopped};

/// So long are calls that are made on the program's behalf waited for, and then the threads of the
/// sandbox, which may be thousands, and making more.
const PATIENCE: Duration = Duration::from_secs(10);

/// Before the first call that can make processes differ: `None` when they are told apart already.
/// Else every thread of the sandbox is brought out of the kernel, so that none is still in a call
/// which was let go on because they were alike, and the call is made anew.
pub fn begin_tracking(asker: Asker<'_>) -> Option<CallResult> {
    if asker.state.subjects.cannot_differ_yet() { None } else { begin_inside(asker) }
}

/// As [`begin_tracking`], before the first exec that enters a run inside.
pub fn begin_inside(asker: Asker<'_>) -> Option<CallResult> {
    let Processes::Many(lineage) = &asker.state.subjects else { return None };
    if !asker.state.subjects.are_alike() {
        return None;
    }
    let tid = asker.caller.call.tid;
    if lineage.failed.compare_exchange(tid, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        return Some(Err(Errno::AGAIN));
    }
    if pause(asker, || lineage.alike.store(false, Ordering::Release)).is_err() {
        lineage.failed.store(tid, Ordering::Release);
    }
    Some(Ok(Answer::Again))
}

/// Brings every thread of the sandbox out of the kernel, calls `then`, and lets them go on. The
/// call in which `asker` waits, like others under way, is made anew or comes again: the answer to
/// it is [`Answer::Again`].
///
/// # Errors
///
/// `AGAIN` if a thread cannot be stopped: another process traces it, or it waits for something that
/// cannot be interrupted. The call may have been begun anew by then.
fn pause(asker: Asker<'_>, then: impl FnOnce() + Send) -> Result<()> {
    let (state, call) = (asker.state, *asker.caller.call);
    state.targets.quiesce.leave(call.id);
    let mut standby = match state.targets.quiesce.changing.try_lock() {
        Ok(standby) => standby,
        Err(TryLockError::Poisoned(standby)) => standby.into_inner(),
        // Policy changes: then calls wait, and this one is decided again.
        Err(TryLockError::WouldBlock) => {
            std::thread::yield_now();
            state.targets.quiesce.hold(call);
            return Ok(());
        }
    };
    standby.end_last();
    // The end of the thread that holds them lets those go on, too, which stop too late: parents by
    // vfork(2).
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("pause".into());
        let Ok(paused) = thread.spawn_scoped(scope, || hold_all(state, call, then)) else {
            state.targets.quiesce.hold(call);
            return Err(Errno::AGAIN);
        };
        paused.join().unwrap_or(Err(Errno::AGAIN))
    })
}

fn hold_all(state: &MonitorState, call: Notification, then: impl FnOnce()) -> Result<()> {
    let stuck = state.targets.quiesce.close(PATIENCE);
    state.targets.quiesce.hold(call);
    let mut stopped = Stopped::new(&state.targets);
    let still = stuck.is_empty() && stopped.stop(Instant::now() + PATIENCE) == Ok(true);
    if still {
        then();
    }
    // Before any call is decided again: an exec waits for the other threads of its process to end,
    // which those that are held could not.
    stopped.release(&stopped.processes().into_keys().collect());
    state.targets.quiesce.open();
    if still { Ok(()) } else { Err(Errno::AGAIN) }
}
