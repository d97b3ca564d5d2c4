//! The end of a run inside: with its command, as that of any run.

use super::runs::Inside;
use crate::{state::MonitorState, subject};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, Result},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use std::{
    collections::BTreeSet,
    os::fd::OwnedFd,
    sync::Arc,
    thread::{Builder, sleep},
    time::Duration,
};

/// Between two looks for processes that are left: doubled from the first to the second.
const SHORT_PAUSE: Duration = Duration::from_millis(1);
const LONG_PAUSE: Duration = Duration::from_millis(100);

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

/// Looks at processes that run: about a second. Those that are left after that make each other, or
/// others come and go of whom nobody knows whether they have left a child.
const MOST_LOOKS: u32 = 20;

/// Ends all processes under layer `number`: as they run, and if some are left then, while `freeze`
/// has the whole sandbox stand still, so that none makes another.
pub fn end_layer<T>(state: &MonitorState, number: u32, freeze: impl Fn() -> Option<T>) {
    while !end_running(state, number) {
        let frozen = freeze();
        let is_whole = look(state, number).is_ok_and(|look| !look.is_incomplete);
        if frozen.is_some() && is_whole {
            return;
        }
    }
}

/// Whether two looks in turn have found none, and nobody has ended during them: one that is born
/// during the first has a parent in it, or is in the second.
fn end_running(state: &MonitorState, number: u32) -> bool {
    let (mut pause, mut found_none) = (SHORT_PAUSE, 0);
    let mut ended = BTreeSet::new();
    for _ in 0..MOST_LOOKS {
        let look = look(state, number);
        let (is_left, is_quiet) = match &look {
            Ok(look) => (look.is_left, !look.is_incomplete && look.ended.is_subset(&ended)),
            Err(_) => (true, false),
        };
        found_none = if is_quiet && !is_left { found_none + 1 } else { 0 };
        if found_none == 2 {
            return true;
        }
        ended = look.map(|look| look.ended).unwrap_or_default();
        if found_none == 0 {
            sleep(pause);
            pause = (pause * 2).min(LONG_PAUSE);
        }
    }
    false
}

/// What a look for processes under a layer has found.
struct Look {
    /// Some were there, or may have been.
    is_left: bool,
    /// The processes of the sandbox that have ended.
    ended: BTreeSet<u32>,
    /// Somebody may have been missed.
    is_incomplete: bool,
}

/// Ends whoever is under layer `number`.
fn look(state: &MonitorState, number: u32) -> Result<Look> {
    let (inside, is_incomplete) = state.targets.tree.look_inside()?;
    let (mut is_left, mut ended) = (false, BTreeSet::new());
    for pid in inside {
        if is_under(state, pid, number) && supervisor::lives(&state.targets.tree, pid) {
            end(state, pid, number);
            is_left = true;
        } else if !supervisor::lives(&state.targets.tree, pid) {
            // Asked last: whoever has ended by now may not have been known for what it was.
            ended.insert(pid);
        }
    }
    Ok(Look { is_left, ended, is_incomplete })
}

/// Ends process `pid` if it is under layer `number`.
fn end(state: &MonitorState, pid: u32, number: u32) {
    // Held first: what is found out about the number is true of this process, or it has ended.
    let process = number_of(pid).and_then(|it| pidfd_open(it, PidfdFlags::empty()));
    let Ok(process) = process else { return };
    if state.targets.tree.is_inside(pid) && is_under(state, pid, number) {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}

fn is_under(state: &MonitorState, pid: u32, number: u32) -> bool {
    let label = subject::label_of(state, pid).ok();
    let parts = label.and_then(|it| state.inside.stack.parts(it));
    parts.is_some_and(|it| it.inner.iter().any(|(layer, _)| *layer == number))
}

fn number_of(pid: u32) -> Result<Pid> {
    Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)
}
