//! A moment in which no thread of the sandbox is in the kernel.

use super::Stopped;
use crate::{call::Asker, state::MonitorState, sys::notify::Notification};
use rustix::io::{Errno, Result};
use std::{
    sync::TryLockError,
    time::{Duration, Instant},
};

/// So long are calls that are made on the program's behalf waited for, and then the threads of the
/// sandbox, which may be thousands, and making more.
const PATIENCE: Duration = Duration::from_secs(10);

/// Brings every thread of the sandbox out of the kernel, calls `then`, and lets them go on. The
/// call in which `asker` waits, like others under way, is made anew or comes again: the answer to
/// it is [`Answer::Again`](crate::call::Answer::Again).
///
/// # Errors
///
/// `AGAIN` if a thread cannot be stopped: another process traces it, or it waits for something that
/// cannot be interrupted. The call may have been begun anew by then.
pub(crate) fn pause(asker: Asker<'_>, then: impl FnOnce() + Send) -> Result<()> {
    let (state, call) = (asker.state, *asker.caller.call);
    state.quiesce.leave(call.id);
    let mut last = match state.quiesce.changing.try_lock() {
        Ok(last) => last,
        Err(TryLockError::Poisoned(last)) => last.into_inner(),
        // Policy changes: then calls wait, and this one is decided again.
        Err(TryLockError::WouldBlock) => {
            std::thread::yield_now();
            state.quiesce.hold(call);
            return Ok(());
        }
    };
    if let Some(last) = last.take() {
        last.end();
    }
    // The end of the thread that holds them lets those go on, too, which stop too late: parents by
    // vfork(2).
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("pause".into());
        let Ok(paused) = thread.spawn_scoped(scope, || hold_all(state, call, then)) else {
            state.quiesce.hold(call);
            return Err(Errno::AGAIN);
        };
        paused.join().unwrap_or(Err(Errno::AGAIN))
    })
}

fn hold_all(state: &MonitorState, call: Notification, then: impl FnOnce()) -> Result<()> {
    let stuck = state.quiesce.close(PATIENCE);
    state.quiesce.hold(call);
    let mut stopped = Stopped::new(state);
    let still = stuck.is_empty() && stopped.stop(Instant::now() + PATIENCE) == Ok(true);
    if still {
        then();
    }
    // Before any call is decided again: an exec waits for the other threads of its process to end,
    // which those that are held could not.
    stopped.release(&stopped.processes().into_keys().collect());
    state.quiesce.open();
    if still { Ok(()) } else { Err(Errno::AGAIN) }
}
