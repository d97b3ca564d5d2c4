//! Seizing threads so that it comes to an end.
//!
//! The kernel seizes no thread while one of its process executes a program: that one waits for all
//! others of the process to end, and whoever would seize waits for it. Those that are held here end
//! once they are waited for; those that somebody inside traces, when he likes.

use super::{Stopped, is_alive, run_state};
use crate::{
    signal::kill_inside,
    sys::ptrace::{self, State},
    targets::Targets,
};
use proc::ProcessTree;
use rustix::io::{Errno, Result};

/// Helps whoever seizes until [`SeizeTimeout::end`](crate::SeizeTimeout::end). Whoever does so
/// begins before the program, which may use up all threads that there may be.
pub fn help_to_seize(targets: &Targets) {
    targets.seizing.watch(|pid| help(&targets.tree, pid));
}

impl Stopped<'_> {
    /// Seizes what is not held yet; whether there was any, or one that has ended since it was
    /// listed: before that it may have made another, which was not.
    pub(super) fn seize_new(&mut self) -> Result<bool> {
        let timeout = &self.targets.seizing;
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
                match timeout.seize(pid, || ptrace::seize(tid)) {
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
        kill_inside(tree, pid);
    }
    seen_off
}

fn is_foreign(tree: &ProcessTree, tid: u32) -> bool {
    let tracer = tree.proc.status(tid).ok().and_then(|status| status.tracer());
    let of = |tracer| tree.proc.identity(tracer).map(|it| it.pid).ok();
    tracer.is_some_and(|it| it != 0 && of(it) != Some(std::process::id()))
}
