//! The end of a run inside: with its command, as that of any run.

use super::Inside;
use crate::{state::MonitorState, subject};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, Result},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use std::{
    os::fd::OwnedFd,
    sync::Arc,
    thread::{Builder, sleep},
    time::Duration,
};

/// Between two looks for processes that are left: doubled from the first to the second.
const SHORT_PAUSE: Duration = Duration::from_millis(1);
const LONG_PAUSE: Duration = Duration::from_millis(100);

/// Ends all processes under the layer of a number.
pub type EndLayer = dyn Fn(u32) + Send + Sync;

/// Has whatever is left under layer `number` end with the command `pid`, which the caller holds.
pub(super) fn end_with(inside: &Arc<Inside>, pid: u32, number: u32) -> Result<()> {
    let command = pidfd_open(number_of(pid)?, PidfdFlags::empty())?;
    let inside = Arc::clone(inside);
    let wait = move || {
        wait_for(&command);
        if let Some(serving) = inside.serving.get() {
            (serving.end)(number);
        }
    };
    let thread = Builder::new().name("inside".into()).stack_size(128 << 10);
    thread.spawn(wait).map(drop).map_err(|_| Errno::AGAIN)
}

fn wait_for(process: &OwnedFd) {
    let mut ended = [PollFd::new(process, PollFlags::IN)];
    while poll(&mut ended, None).is_err() {
        sleep(LONG_PAUSE);
    }
}

/// Ends all processes under layer `number`. Returns when two looks in turn have found none: one
/// that is born during the first has a parent in it, or is in the second. Where nothing can be
/// seen, as there are no descriptors left, it looks again.
pub fn end_layer(state: &MonitorState, number: u32) {
    let (mut pause, mut found_none) = (SHORT_PAUSE, 0);
    while found_none < 2 {
        let pids = state.targets.tree.proc.pids();
        let left = pids.map(|pids| pids.into_iter().filter(|pid| may_be_left(state, *pid, number)));
        if left.is_ok_and(|left| left.count() == 0) {
            found_none += 1;
        } else {
            found_none = 0;
            sleep(pause);
            pause = (pause * 2).min(LONG_PAUSE);
        }
    }
}

/// Ends process `pid` if it is under layer `number`. Whether it is still to be looked for.
fn may_be_left(state: &MonitorState, pid: u32, number: u32) -> bool {
    if !is_under(state, pid, number) {
        return false;
    }
    // Held first: what is found out about the number is true of this process, or it has ended.
    let process = match number_of(pid).and_then(|it| pidfd_open(it, PidfdFlags::empty())) {
        Ok(process) => process,
        Err(error) => return error != Errno::SRCH,
    };
    let tree = &state.targets.tree;
    let has_ended = tree.proc.stat(pid).is_ok_and(|it| matches!(it.state, 'Z' | 'X'));
    if has_ended || tree.is_outside(pid) {
        return false;
    }
    if tree.is_inside(pid) && is_under(state, pid, number) {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
    true
}

fn is_under(state: &MonitorState, pid: u32, number: u32) -> bool {
    let label = subject::label_of(state, pid).ok();
    let parts = label.and_then(|it| state.inside.stack.parts(it));
    parts.is_some_and(|it| it.inner.iter().any(|(layer, _)| *layer == number))
}

fn number_of(pid: u32) -> Result<Pid> {
    Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)
}
