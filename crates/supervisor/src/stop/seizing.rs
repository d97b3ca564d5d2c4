//! Seizing threads so that it comes to an end.
//!
//! The kernel seizes no thread while one of its process executes a program: that one waits for all
//! others of the process to end, and whoever would seize waits for it. Those that are held here end
//! once they are waited for; those that somebody inside traces, when he likes.

use super::{Stopped, is_alive, run_state};
use crate::{
    sys::{
        ptrace::{self, State},
        thread,
    },
    targets::Targets,
};
use confine::launch::with_raised;
use proc::ProcessTree;
use rustix::{
    io::{Errno, Result},
    process::{Pid, PidfdFlags, pidfd_open},
    thread::CapabilitySet,
};
use std::{
    os::fd::AsFd as _,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// No exec that nobody holds up takes longer on a machine that is not held up itself.
const PATIENCE: Duration = Duration::from_millis(100);

/// Sees to it that whoever seizes does not wait for ever.
#[derive(Default)]
pub(super) struct SeizeTimeout {
    state: Mutex<Watched>,
    over: Condvar,
}

#[derive(Default)]
struct Watched {
    /// The process of which a thread is being seized, and since when.
    seizing: Option<(u32, Instant)>,
    /// Threads that were waited for in the place of whoever holds them.
    seen_off: Vec<u32>,
    is_over: bool,
}

impl SeizeTimeout {
    /// Seizes a thread of `pid`.
    fn seize(&self, pid: u32, tid: u32) -> Result<()> {
        self.lock().seizing = Some((pid, Instant::now()));
        let seized = ptrace::seize(tid);
        self.lock().seizing = None;
        seized
    }

    /// The threads that have ended, and were waited for already.
    fn seen_off(&self) -> Vec<u32> {
        std::mem::take(&mut self.lock().seen_off)
    }

    /// Helps whoever seizes until [`SeizeTimeout::end`].
    pub(super) fn watch(&self, targets: &Targets) {
        let mut watched = self.lock();
        while !watched.is_over {
            let late = watched.seizing.filter(|(_, since)| since.elapsed() > PATIENCE);
            if let Some((pid, _)) = late {
                drop(watched);
                let seen_off = help(&targets.tree, pid);
                watched = self.lock();
                watched.seen_off.extend(seen_off);
            }
            let waited = self.over.wait_timeout(watched, PATIENCE / 4);
            watched = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Nothing is seized any more.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.over.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stopped<'_> {
    /// Seizes what is not held yet; whether there was any, or one that has ended since it was
    /// listed: before that it may have made another, which was not.
    pub(super) fn seize_new(&mut self, timeout: &SeizeTimeout) -> Result<bool> {
        let (pids, mut any) = self.targets.tree.look_inside()?;
        let ended = std::mem::take(&mut self.ended);
        for pid in pids {
            if self.refused.contains(&pid) || self.left_alone.contains(&pid) {
                continue;
            }
            let tids = self.targets.tree.proc.threads(pid)?;
            any |= tids.is_empty();
            if is_traced(&self.targets.tree, &tids) {
                self.refused.insert(pid);
                continue;
            }
            for tid in tids {
                if self.threads.contains_key(&tid) {
                    continue;
                }
                match timeout.seize(pid, tid) {
                    Ok(()) => {
                        self.hold(pid, tid, None);
                        any = true;
                    }
                    Err(Errno::PERM) if self.is_ours(tid) => {
                        self.hold(pid, tid, None);
                        any = true;
                    }
                    Err(Errno::PERM) if is_alive(&self.targets.tree, tid) => {
                        self.refused.insert(pid);
                    }
                    // Those that nobody waits for are there at each look.
                    Err(_) => {
                        any |= !ended.contains_key(&tid);
                        self.ended.insert(tid, pid);
                    }
                }
            }
        }
        for tid in timeout.seen_off() {
            self.note(tid, State::Gone);
        }
        Ok(any)
    }

    /// Whether a thread was seized at birth.
    fn is_ours(&self, tid: u32) -> bool {
        let own = rustix::thread::gettid().as_raw_pid().cast_unsigned();
        self.targets.tree.proc.status(tid).is_ok_and(|status| status.tracer() == Some(own))
    }
}

/// Whether somebody else traces a thread of a process that has several: such a process is not
/// seized, as it can have whoever does so wait.
pub(super) fn is_traced(tree: &ProcessTree, tids: &[u32]) -> bool {
    tids.len() > 1 && tids.iter().any(|tid| is_foreign(tree, *tid))
}

/// Sees off the threads of `pid` that are held here and have ended; the process ends if there are
/// none, and somebody else traces one.
fn help(tree: &ProcessTree, pid: u32) -> Vec<u32> {
    let tids = tree.proc.threads(pid).unwrap_or_default();
    let has_ended = |tid: &u32| matches!(run_state(tree, *tid), Ok(Some('Z')));
    let is_seen_off = |tid: &u32| *tid != pid && has_ended(tid) && ptrace::see_off(*tid);
    let seen_off: Vec<u32> = tids.iter().copied().filter(is_seen_off).collect();
    if seen_off.is_empty() && is_traced(tree, &tids) {
        end(tree, pid);
    }
    seen_off
}

fn is_foreign(tree: &ProcessTree, tid: u32) -> bool {
    let tracer = tree.proc.status(tid).ok().and_then(|status| status.tracer());
    let of = |tracer| tree.proc.identity(tracer).map(|it| it.pid).ok();
    tracer.is_some_and(|it| it != 0 && of(it) != Some(std::process::id()))
}

/// Kills a process of the sandbox.
pub(super) fn end(tree: &ProcessTree, pid: u32) {
    let process = Pid::from_raw(pid.cast_signed());
    let Some(Ok(process)) = process.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return };
    // A number is that of a process inside once its descriptor is held.
    if tree.is_inside(pid) {
        // One that has ended is as good.
        let kill = || thread::signal(process.as_fd(), libc::SIGKILL);
        let _ = with_raised(CapabilitySet::KILL, kill);
    }
}
