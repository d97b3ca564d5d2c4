//! Which label a process has: its parent's at the fork, another only by exec.

use crate::{
    caller,
    caller::Caller,
    gate::{Answer, Asker, Gate, Outcome},
};
use flask::{InitialSid, Sid};
use rustix::io::{Errno, Result};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The labels of the processes of a run.
#[derive(Debug)]
pub(crate) enum Processes {
    /// Policy knows one domain only: whoever comes through the gate is in it.
    One(Sid),
    /// Labels by process.
    Many(Mutex<HashMap<u32, Process>>),
}

/// Labels kept before those of dead processes are thrown away.
const MOST_KNOWN: usize = 4096;

/// A process that has a label of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    sid: Sid,
    /// When it started: together with the PID, that is who it is.
    started: u64,
    /// Another process may be tracing it or reading its memory.
    watched: bool,
}

impl Processes {
    pub(crate) fn new(domains: &[Sid], command: u32, view: &crate::gate::View) -> Result<Self> {
        let [first, _, ..] = domains else {
            return Ok(Self::One(domains.first().copied().unwrap_or(InitialSid::Init.into())));
        };
        let started = caller::started(view, command)?;
        Ok(Self::Many(Mutex::new(HashMap::from([(
            command,
            Process { sid: *first, started, watched: false },
        )]))))
    }

    /// The label of the calling process.
    pub(crate) fn sid(&self, gate: &Gate, caller: Caller<'_>) -> Result<Sid> {
        match self {
            Self::One(sid) => Ok(*sid),
            Self::Many(known) => label(gate, known, caller.call.tid),
        }
    }
}

fn lock(known: &Mutex<HashMap<u32, Process>>) -> MutexGuard<'_, HashMap<u32, Process>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The label of the process of thread `tid`: its own, or at first sight that of its nearest ancestor with one. It is the
/// one that its parent had at the fork, because a process that changes its label, or ends, has its children labelled
/// first. An ancestor without a label has never come through the gate, so it has never changed it.
fn label(gate: &Gate, known: &Mutex<HashMap<u32, Process>>, tid: u32) -> Result<Sid> {
    let mut at = caller::identity(&gate.view, tid)?.pid;
    let mut line = Vec::new();
    let mut sid = loop {
        if let Some(sid) = own_label(gate, &lock(known), at)? {
            break sid;
        }
        line.push(at);
        // An orphan's parent is init or the monitor, neither of which has a label, nor has anybody outside: whose
        // child it was is lost, and it may do nothing.
        at = caller::identity(&gate.view, at).map_err(|_| Errno::PERM)?.parent;
    };
    for child in line.into_iter().rev() {
        sid = inherit(gate, known, child, at)?;
        at = child;
    }
    Ok(sid)
}

/// Gives `pid` the label of `parent`, unless it has one.
fn inherit(
    gate: &Gate,
    known: &Mutex<HashMap<u32, Process>>,
    pid: u32,
    parent: u32,
) -> Result<Sid> {
    let started = caller::started(&gate.view, pid)?;
    let mut known = lock(known);
    // Somebody else may have labelled it, and its parent may have changed its label since.
    if let Some(sid) = own_label(gate, &known, pid)? {
        return Ok(sid);
    }
    let sid = own_label(gate, &known, parent)?.ok_or(Errno::PERM)?;
    if caller::identity(&gate.view, pid)?.parent != parent {
        // The parent has ended, and what was looked at may be another process with its number.
        return Err(Errno::PERM);
    }
    if known.len() >= MOST_KNOWN {
        // Whether it still lives is in doubt only for want of means, and then it does.
        known.retain(|pid, process| match caller::started(&gate.view, *pid) {
            Ok(started) => started == process.started,
            Err(error) => !is_gone(error),
        });
    }
    known.insert(pid, Process { sid, started, watched: false });
    Ok(sid)
}

fn own_label(gate: &Gate, known: &HashMap<u32, Process>, pid: u32) -> Result<Option<Sid>> {
    let Some(process) = known.get(&pid) else { return Ok(None) };
    let same = caller::started(&gate.view, pid)? == process.started;
    Ok(same.then_some(process.sid))
}

/// Notes that another process has been let at the inside of `pid`. The kernel may take its time with the call, so the
/// label of `pid` is what it is from now on: [`enter`] refuses to change it.
pub(crate) fn watch(gate: &Gate, pid: u32) {
    if let Processes::Many(known) = &gate.subjects
        && let Some(process) = lock(known).get_mut(&pid)
    {
        process.watched = true;
    }
}

/// The label of a process of the sandbox.
pub(crate) fn label_of(gate: &Gate, pid: u32) -> Result<Sid> {
    match &gate.subjects {
        Processes::One(sid) => Ok(*sid),
        Processes::Many(known) => label(gate, known, pid),
    }
}

/// The label of another process of the sandbox; of everything outside, the initial SID `kernel`.
pub(crate) fn subject_of(asker: Asker<'_>, pid: u32) -> Result<Sid> {
    let gate = asker.gate;
    if !gate.view.is_inside(pid) {
        return Ok(InitialSid::Kernel.into());
    }
    label_of(gate, pid).or(Ok(InitialSid::Kernel.into()))
}

/// Gives every child of `pid` that has no label yet the label that `pid` has now. Grandchildren get theirs from them.
pub(crate) fn label_children(gate: &Gate, pid: u32) -> Result<()> {
    let Processes::Many(known) = &gate.subjects else { return Ok(()) };
    for child in gate.view.children(pid)? {
        // A child that is gone meanwhile needs no label.
        let _ = label(gate, known, child);
    }
    Ok(())
}

/// As [`label_children`], also when some of them end meanwhile: then the kernel's list of children can leave others
/// out. Before an exit that does not matter, as a child left out may do nothing afterwards.
pub(crate) fn label_all_children(gate: &Gate, pid: u32) -> Result<()> {
    let Processes::Many(known) = &gate.subjects else { return Ok(()) };
    for other in gate.view.pids()? {
        match caller::identity(&gate.view, other).map(|it| it.parent == pid) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(error) if is_gone(error) => continue,
            Err(error) => return Err(error),
        }
        let labelled = label(gate, known, other);
        if labelled.is_err() && !caller::started(&gate.view, other).is_err_and(is_gone) {
            return labelled.map(drop);
        }
    }
    Ok(())
}

/// Whether an error says that a process has ended.
fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::SRCH)
}

/// Changes the label of a process that has just entered a domain. It is stopped, alone, and its children are labelled.
pub(crate) fn enter(gate: &Gate, pid: u32, sid: Sid) -> Result<()> {
    let Processes::Many(known) = &gate.subjects else { return Err(Errno::PERM) };
    let started = caller::started(&gate.view, pid)?;
    let mut known = lock(known);
    if known.get(&pid).is_some_and(|process| process.watched && process.started == started) {
        return Err(Errno::PERM);
    }
    known.insert(pid, Process { sid, started, watched: false });
    Ok(())
}

/// A process ends: its children keep the label that they were born with.
pub(super) fn exit(asker: Asker<'_>) -> Outcome {
    let pid = asker.caller.identity()?.pid;
    label_children(asker.gate, pid)?;
    // Ending grants nothing.
    Ok(Answer::Continue)
}
