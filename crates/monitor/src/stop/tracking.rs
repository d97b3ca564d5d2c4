//! Telling processes apart: from the moment on in which they can differ.

use super::pause::pause;
use crate::{
    call::{Answer, Asker, CallResult},
    subject::Processes,
};
use std::sync::atomic::Ordering;

/// Before the first call that can make processes differ: `None` when they are told apart already.
/// Else every thread of the sandbox is brought out of the kernel, so that none is still in a call
/// which was let go on because they were alike, and the call is made anew.
pub(crate) fn begin_tracking(asker: Asker<'_>) -> Option<CallResult> {
    if asker.state.subjects.is_one() { None } else { begin_inside(asker) }
}

/// As [`begin_tracking`], before the first exec that enters a run inside.
pub(crate) fn begin_inside(asker: Asker<'_>) -> Option<CallResult> {
    let Processes::Many(lineage) = &asker.state.subjects else { return None };
    if !asker.state.subjects.are_alike() {
        return None;
    }
    let tid = asker.caller.call.tid;
    if lineage.failed.compare_exchange(tid, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        return Some(Err(rustix::io::Errno::AGAIN));
    }
    if pause(asker, || lineage.alike.store(false, Ordering::Release)).is_err() {
        lineage.failed.store(tid, Ordering::Release);
    }
    Some(Ok(Answer::Again))
}
