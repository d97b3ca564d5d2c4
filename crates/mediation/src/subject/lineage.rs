//! Which label a process has: its parent's at the fork, another only by exec.
//!
//! The kernel hands labels on, see [`Mark`]. Here is who may change one, and what must not be the
//! case then.
//!
//! Whether and when processes are told apart depends on how many domains policy has, and whether
//! the kernel lets the command bear a mark:
//!
//! | | one, unmarked | one | several |
//! |---|---|---|---|
//! | [`Processes`] | `One` | `Many` | `Many` |
//! | `are_marked` | no | yes | yes |
//! | `policy_has_one_domain` | yes | yes | no |
//! | `cannot_differ_yet` | yes | until a run begins inside | no |
//! | `are_alike` | yes | until a run begins inside | until one enters, or looks into, another |
//! | `several` | none | from then on | always |

use super::{
    mark::Mark,
    processes::{LabelGeneration, Lineage, Processes, Tell},
};
use crate::{call::Asker, state::MonitorState};
use flask::{InitialSid, Sid};
use rustix::{
    io::{Errno, Result},
    process::{Pid, Resource, Rlimit, prlimit},
};
use std::collections::HashMap;

/// Watched processes that are kept before those that have ended are thrown away.
const MOST_WATCHED: usize = 4096;

/// The label of a process of the sandbox.
pub fn label_of(state: &MonitorState, pid: u32) -> Result<Sid> {
    match &state.subjects {
        Processes::One(sid) => Ok(*sid),
        Processes::Many(lineage) if state.subjects.cannot_differ_yet() => Ok(lineage.first),
        Processes::Many(_) => Ok(Mark::of(&state.targets.tree, pid)?.sid),
    }
}

/// The label of a process in the policy of the run, whichever run inside it belongs to.
pub fn outer_label_of(state: &MonitorState, pid: u32) -> Option<Sid> {
    label_of(state, pid).ok().and_then(|sid| state.inside.stack.outer(sid))
}

/// Whether processes bear marks.
pub fn are_marked(state: &MonitorState) -> bool {
    matches!(state.subjects, Processes::Many(_))
}

/// The label of another process of the sandbox; of everything outside, the initial SID `kernel`.
pub fn subject_of(asker: Asker<'_>, pid: u32) -> Result<Sid> {
    let state = asker.state;
    if !state.targets.tree.is_inside(pid) {
        return Ok(InitialSid::Kernel.into());
    }
    label_of(state, pid).or(Ok(InitialSid::Kernel.into()))
}

/// For how long a process of the sandbox has had its label. Not said in the middle of a change: who
/// is told of that asks again, and must not get the old answer.
pub fn label_generation(state: &MonitorState, pid: u32) -> Result<LabelGeneration> {
    match &state.subjects {
        subjects if subjects.cannot_differ_yet() => {
            Ok(LabelGeneration { started: state.targets.tree.proc.started(pid)?, entered: 0 })
        }
        Processes::One(_) => Err(Errno::PERM),
        Processes::Many(lineage) => lineage.known().label_generation(&state.targets.tree, pid),
    }
}

/// Whether what has just been opened of a process belongs to the domain that it has had for
/// `before`.
pub fn has_stayed(state: &MonitorState, pid: u32, before: LabelGeneration) -> bool {
    let Some(lineage) = state.subjects.several() else { return true };
    let known = lineage.known();
    !known.entering.contains(&pid) && known.label_generation(&state.targets.tree, pid) == Ok(before)
}

/// Notes that another process has been let at the inside of `pid`. The kernel may take its time
/// with the call, so the label of `pid` is what it is from now on: [`enter`] refuses to change it.
pub fn watch(state: &MonitorState, pid: u32) -> Result<()> {
    let Some(lineage) = state.subjects.several() else { return Ok(()) };
    let started = state.targets.tree.proc.started(pid)?;
    let watched = &mut lineage.known().watched;
    if watched.len() >= MOST_WATCHED {
        forget_the_dead(state, watched);
    }
    watched.insert(pid, started);
    Ok(())
}

/// Leaves those of `processes`, each with the time of its start, that still live. That is in doubt
/// only for want of means, and then they do.
fn forget_the_dead(state: &MonitorState, processes: &mut HashMap<u32, u64>) {
    processes.retain(|pid, started| match state.targets.tree.proc.started(*pid) {
        Ok(now) => now == *started,
        Err(error) => !is_gone(error),
    });
}

/// Whether a process that another traces may execute a program which nobody looks at: as long as no
/// domain has been entered, there is none that it must not run. While it lives, none is entered.
pub fn may_execute_unseen(state: &MonitorState, pid: u32) -> Result<bool> {
    let Some(lineage) = state.subjects.several() else { return Ok(true) };
    let started = state.targets.tree.proc.started(pid)?;
    let mut known = lineage.known();
    if known.entries > 0 || !known.entering.is_empty() {
        return Ok(false);
    }
    known.unseen.insert(pid, started);
    Ok(true)
}

/// Whether an error says that a process has ended.
pub fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::SRCH)
}

/// Has `tell` called before any label changes, if nobody is told yet.
pub fn on_new_label(state: &MonitorState, tell: Tell) {
    if let Processes::Many(lineage) = &state.subjects {
        lineage.known().tell.get_or_insert(tell);
    }
}

/// A process executes a program that enters a domain, until this is dropped.
pub struct Entering<'a> {
    state: &'a MonitorState,
    pid: u32,
}

impl<'a> Entering<'a> {
    /// # Errors
    ///
    /// `AGAIN` while a traced process lives that has executed a program unseen: it may still be
    /// about to find that program.
    pub fn new(state: &'a MonitorState, pid: u32) -> Result<Self> {
        if let Processes::Many(lineage) = &state.subjects {
            let known = &mut *lineage.known();
            forget_the_dead(state, &mut known.unseen);
            if !known.unseen.is_empty() {
                return Err(Errno::AGAIN);
            }
            known.entering.insert(pid);
        }
        Ok(Self { state, pid })
    }
}

impl Drop for Entering<'_> {
    fn drop(&mut self) {
        if let Processes::Many(lineage) = &self.state.subjects {
            lineage.known().entering.remove(&self.pid);
        }
    }
}

/// Whether a thread takes nothing into another domain by which it could run code there.
///
/// That is a seccomp filter of its own, which answers the system calls of the next program. It is
/// also each personality that the kernel takes away from a program with more rights
/// (`PER_CLEAR_ON_SETID` of `linux/personality.h`).
pub fn brings_nothing(state: &MonitorState, tid: u32) -> Result<bool> {
    const CLEARED: u32 = 0x40_0000 | 0x20_0000 | 0x10_0000 | 0x4_0000;
    let Processes::Many(lineage) = &state.subjects else { return Ok(true) };
    let personality = state.targets.tree.proc.personality(tid)?;
    let filters = state.targets.tree.proc.status(tid)?.filters().ok_or(Errno::SRCH)?;
    Ok(filters == lineage.known().filters && personality & CLEARED == 0)
}

/// Changes the label of a process that has just entered a domain. It is stopped, and alone.
pub fn enter(state: &MonitorState, pid: u32, sid: Sid) -> Result<()> {
    let lineage = told_apart(state)?;
    let started = state.targets.tree.proc.started(pid)?;
    let mut known = lineage.known();
    if known.watched.get(&pid) == Some(&started) {
        return Err(Errno::PERM);
    }
    known.give_label(pid, sid)
}

/// As [`enter`], for a run inside: whoever traces the process, or has its memory open, may do more
/// than it will. It leaves no core, which the kernel would write with the rights of the run.
pub fn enter_inside(state: &MonitorState, pid: u32, sid: Sid) -> Result<()> {
    let lineage = told_apart(state)?;
    let number = Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    prlimit(Some(number), Resource::Core, none)?;
    lineage.known().give_label(pid, sid)
}

/// What labels change in: nobody's does as long as all are alike.
fn told_apart(state: &MonitorState) -> Result<&Lineage> {
    match &state.subjects {
        Processes::Many(lineage) if !state.subjects.are_alike() => Ok(lineage),
        _ => Err(Errno::PERM),
    }
}
