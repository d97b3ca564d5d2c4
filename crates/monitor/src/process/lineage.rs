//! Which label a process has: its parent's at the fork, another only by exec.

use super::thread::{Thread, Threads};
use crate::{
    caller,
    gate::{Answer, Asker, Gate, Outcome},
    revoke::pause,
    sys::notify::Notification,
};
use flask::{InitialSid, Sid};
use rustix::io::{Errno, Result};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

/// The labels of the processes of a run.
#[derive(Debug)]
pub(crate) enum Processes {
    /// Policy knows one domain only: whoever comes through the gate is in it.
    One(Sid),
    /// Labels by process.
    Many(Box<Lineage>),
}

/// The labels of processes that can differ.
#[derive(Debug)]
pub(crate) struct Lineage {
    /// The domain of the command.
    first: Sid,
    /// No process has left the first domain, nor looks into another, nor has a label of its own yet.
    alike: AtomicBool,
    /// A thread for whose call they could not be told apart.
    failed: AtomicU32,
    known: Mutex<Known>,
}

/// Who is told before a label changes.
pub(super) type Tell = Box<dyn Fn() + Send + Sync>;

/// What is known of processes.
#[derive(Default)]
pub(crate) struct Known {
    processes: HashMap<u32, Process>,
    /// Threads that have made calls.
    threads: Threads,
    /// How often a process has entered a domain.
    entries: u64,
    /// Processes in the middle of an exec that enters a domain: what they are belongs to it already, their label does
    /// not.
    entering: HashSet<u32>,
    /// How many seccomp filters the command had when it was started.
    filters: u32,
    tell: Option<Tell>,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.processes.fmt(f)
    }
}

/// For how long a process has had its label: another process, and another domain, have another tenure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tenure {
    /// When it started, in clock ticks since boot: together with the PID, that is who it is.
    pub(super) started: u64,
    /// Which of the entries into a domain of this run gave it its label; 0 for a label that it was born with.
    pub(super) entered: u64,
}

/// Labels kept before those of dead processes are thrown away.
const MOST_KNOWN: usize = 4096;

/// A process that has a label of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    sid: Sid,
    tenure: Tenure,
    /// Another process may be tracing it or reading its memory.
    watched: bool,
}

impl Processes {
    /// For a run whose command is in the first of `domains`, and can reach the others.
    pub(crate) fn new(domains: &[Sid], command: u32, view: &crate::gate::View) -> Result<Self> {
        let [first, _, ..] = *domains else {
            return Ok(Self::One(domains.first().copied().unwrap_or(InitialSid::Init.into())));
        };
        let filters = caller::filters(view, command)?;
        let known = Mutex::new(Known { filters, ..Known::default() });
        let (alike, failed) = (AtomicBool::new(true), AtomicU32::default());
        Ok(Self::Many(Box::new(Lineage { first, alike, failed, known })))
    }

    /// Whether every process is in the first domain, and stays there until [`tell_apart`].
    pub(crate) fn are_alike(&self) -> bool {
        match self {
            Self::One(_) => true,
            Self::Many(lineage) => lineage.alike.load(Ordering::Acquire),
        }
    }

    /// The label of the process that makes a call.
    pub(crate) fn sid(&self, gate: &Gate, call: &Notification) -> Result<Sid> {
        match self {
            Self::One(sid) => Ok(*sid),
            Self::Many(lineage) if self.are_alike() => Ok(lineage.first),
            Self::Many(lineage) => calling(gate, &lineage.known, call),
        }
    }
}

/// The label of the process that makes `call`.
fn calling(gate: &Gate, known: &Mutex<Known>, call: &Notification) -> Result<Sid> {
    let remembered = {
        let mut known = lock(known);
        let pid = known.threads.process(call.tid);
        // Its process has lived on since it was noted, so the label under this number is its own.
        pid.and_then(|pid| known.processes.get(&pid)).map(|process| process.sid)
    };
    let found = match remembered {
        Some(sid) => Ok(sid),
        None => first_call(gate, known, call.tid),
    };
    // Only now is it known that all this was about the caller, and not about another thread with its number.
    if gate.listener.is_valid(call.id) { found } else { Err(Errno::SRCH) }
}

/// The label of the process of `tid`, which is noted.
fn first_call(gate: &Gate, known: &Mutex<Known>, tid: u32) -> Result<Sid> {
    let process = || Ok::<_, Errno>(caller::identity(&gate.view, tid)?.pid);
    let thread = Thread::hold(tid, process).transpose()?;
    let sid = label(gate, known, tid)?;
    if let Some(thread) = thread {
        lock(known).threads.note(thread);
    }
    Ok(sid)
}

impl Process {
    fn born(sid: Sid, started: u64) -> Self {
        Self { sid, tenure: Tenure { started, entered: 0 }, watched: false }
    }
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The label of the process of thread `tid`: its own, or at first sight that of its nearest ancestor with one. It is the
/// one that its parent had at the fork, because a process that changes its label, or ends, has its children labelled
/// first. An ancestor without a label has never come through the gate, so it has never changed it.
fn label(gate: &Gate, known: &Mutex<Known>, tid: u32) -> Result<Sid> {
    let mut at = caller::identity(&gate.view, tid)?.pid;
    let mut line = Vec::new();
    let mut sid = loop {
        if let Some(sid) = own_label(gate, &lock(known).processes, at)? {
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
fn inherit(gate: &Gate, known: &Mutex<Known>, pid: u32, parent: u32) -> Result<Sid> {
    let started = caller::started(&gate.view, pid)?;
    let known = &mut lock(known).processes;
    // Somebody else may have labelled it, and its parent may have changed its label since.
    if let Some(sid) = own_label(gate, known, pid)? {
        return Ok(sid);
    }
    let sid = own_label(gate, known, parent)?.ok_or(Errno::PERM)?;
    if caller::identity(&gate.view, pid)?.parent != parent {
        // The parent has ended, and what was looked at may be another process with its number.
        return Err(Errno::PERM);
    }
    make_room(gate, known);
    known.insert(pid, Process::born(sid, started));
    Ok(sid)
}

/// Throws away the labels of dead processes, if there are many.
fn make_room(gate: &Gate, known: &mut HashMap<u32, Process>) {
    if known.len() >= MOST_KNOWN {
        // Whether it still lives is in doubt only for want of means, and then it does.
        known.retain(|pid, process| match caller::started(&gate.view, *pid) {
            Ok(started) => started == process.tenure.started,
            Err(error) => !is_gone(error),
        });
    }
}

fn own_label(gate: &Gate, known: &HashMap<u32, Process>, pid: u32) -> Result<Option<Sid>> {
    let Some(process) = known.get(&pid) else { return Ok(None) };
    let same = caller::started(&gate.view, pid)? == process.tenure.started;
    Ok(same.then_some(process.sid))
}

/// Notes that another process has been let at the inside of `pid`. The kernel may take its time with the call, so the
/// label of `pid` is what it is from now on: [`enter`] refuses to change it.
pub(crate) fn watch(gate: &Gate, pid: u32) {
    let Processes::Many(lineage) = &gate.subjects else { return };
    if gate.subjects.are_alike() {
        // Whoever asks before has given it a label; this one is for those who have not.
        let _ = label_first(gate, lineage, pid);
    }
    if let Some(process) = lock(&lineage.known).processes.get_mut(&pid) {
        process.watched = true;
    }
}

/// The label of a process of the sandbox.
pub(crate) fn label_of(gate: &Gate, pid: u32) -> Result<Sid> {
    match &gate.subjects {
        Processes::One(sid) => Ok(*sid),
        Processes::Many(lineage) if gate.subjects.are_alike() => Ok(lineage.first),
        Processes::Many(lineage) => label(gate, &lineage.known, pid),
    }
}

/// For how long a process of the sandbox has had its label.
pub(super) fn tenure(gate: &Gate, pid: u32) -> Result<Tenure> {
    let born = Tenure { started: caller::started(&gate.view, pid)?, entered: 0 };
    let Processes::Many(lineage) = &gate.subjects else { return Ok(born) };
    // If it was not seen before, it is now.
    if gate.subjects.are_alike() {
        label_first(gate, lineage, pid)?;
    } else {
        label(gate, &lineage.known, pid)?;
    }
    let own = lock(&lineage.known).processes.get(&pid).map(|process| process.tenure);
    own.filter(|own| own.started == born.started).ok_or(Errno::SRCH)
}

/// Has `tell` called before any label changes, if nobody is told yet.
pub(super) fn on_new_label(gate: &Gate, tell: Tell) {
    if let Processes::Many(lineage) = &gate.subjects {
        lock(&lineage.known).tell.get_or_insert(tell);
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
    let Processes::Many(lineage) = &gate.subjects else { return Ok(()) };
    for child in gate.view.children(pid)? {
        // A child that is gone meanwhile needs no label.
        let _ = label(gate, &lineage.known, child);
    }
    Ok(())
}

/// As [`label_children`], also when some of them end meanwhile: then the kernel's list of children can leave others
/// out. Before an exit that does not matter, as a child left out may do nothing afterwards.
pub(crate) fn label_all_children(gate: &Gate, pid: u32) -> Result<()> {
    let Processes::Many(lineage) = &gate.subjects else { return Ok(()) };
    for other in gate.view.pids()? {
        match caller::identity(&gate.view, other).map(|it| it.parent == pid) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(error) if is_gone(error) => continue,
            Err(error) => return Err(error),
        }
        let labelled = label(gate, &lineage.known, other);
        if labelled.is_err() && !caller::started(&gate.view, other).is_err_and(is_gone) {
            return labelled.map(drop);
        }
    }
    Ok(())
}

/// Whether an error says that a process has ended.
pub(super) fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::SRCH)
}

/// A process executes a program that enters a domain, until this is dropped.
pub(super) struct Entering<'a> {
    gate: &'a Gate,
    pid: u32,
}

impl<'a> Entering<'a> {
    pub(super) fn new(gate: &'a Gate, pid: u32) -> Self {
        if let Processes::Many(lineage) = &gate.subjects {
            lock(&lineage.known).entering.insert(pid);
        }
        Self { gate, pid }
    }
}

impl Drop for Entering<'_> {
    fn drop(&mut self) {
        if let Processes::Many(lineage) = &self.gate.subjects {
            lock(&lineage.known).entering.remove(&self.pid);
        }
    }
}

/// Whether what has just been opened of a process belongs to the domain that it has had for `tenure`.
pub(super) fn has_stayed(gate: &Gate, pid: u32, tenure: Tenure) -> bool {
    let Processes::Many(lineage) = &gate.subjects else { return true };
    let known = lock(&lineage.known);
    !known.entering.contains(&pid)
        && known.processes.get(&pid).is_some_and(|process| process.tenure == tenure)
}

/// Whether a thread takes nothing into another domain by which it could run code there: no seccomp filter of its own,
/// which answers the system calls of the next program, and none of the personalities that the kernel takes away from
/// a program with more rights (`PER_CLEAR_ON_SETID` of `linux/personality.h`).
pub(super) fn brings_nothing(gate: &Gate, tid: u32) -> Result<bool> {
    const CLEARED: u32 = 0x40_0000 | 0x20_0000 | 0x10_0000 | 0x4_0000;
    let Processes::Many(lineage) = &gate.subjects else { return Ok(true) };
    let personality = caller::read_text(&gate.view, &format!("{tid}/personality"))?;
    let personality = u32::from_str_radix(personality.trim(), 16).map_err(|_| Errno::PERM)?;
    let filters = caller::filters(&gate.view, tid)?;
    Ok(filters == lock(&lineage.known).filters && personality & CLEARED == 0)
}

/// Changes the label of a process that has just entered a domain. It is stopped, alone, and its children are labelled.
pub(crate) fn enter(gate: &Gate, pid: u32, sid: Sid) -> Result<()> {
    let Processes::Many(lineage) = &gate.subjects else { return Err(Errno::PERM) };
    if gate.subjects.are_alike() {
        return Err(Errno::PERM);
    }
    let started = caller::started(&gate.view, pid)?;
    let mut known = lock(&lineage.known);
    let watched = |process: &Process| process.watched && process.tenure.started == started;
    if known.processes.get(&pid).is_some_and(watched) {
        return Err(Errno::PERM);
    }
    if let Some(tell) = &known.tell {
        tell();
    }
    known.entries += 1;
    let tenure = Tenure { started, entered: known.entries };
    known.processes.insert(pid, Process { sid, tenure, watched: false });
    Ok(())
}

/// Before the first call that can make processes differ: `None` when they are told apart already. Else every thread of
/// the sandbox is brought out of the kernel, so that none is still in a call which was let go on because they were alike,
/// every process gets a label of its own, and the call is made anew.
pub(super) fn tell_apart(asker: Asker<'_>) -> Option<Outcome> {
    let Processes::Many(lineage) = &asker.gate.subjects else { return None };
    if !asker.gate.subjects.are_alike() {
        return None;
    }
    let tid = asker.caller.call.tid;
    if lineage.failed.compare_exchange(tid, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        return Some(Err(Errno::AGAIN));
    }
    let label_all = |pids: &BTreeSet<u32>| {
        for pid in pids {
            match label_first(asker.gate, lineage, *pid) {
                Err(error) if !is_gone(error) => return Err(error),
                _ => {}
            }
        }
        lineage.alike.store(false, Ordering::Release);
        Ok(())
    };
    if pause(asker, label_all).is_err() {
        lineage.failed.store(tid, Ordering::Release);
    }
    Some(Ok(Answer::Again))
}

/// Gives a process a label of its own, while all are in the first domain.
fn label_first(gate: &Gate, lineage: &Lineage, pid: u32) -> Result<()> {
    let started = caller::started(&gate.view, pid)?;
    let known = &mut lock(&lineage.known).processes;
    if known.get(&pid).is_none_or(|process| process.tenure.started != started) {
        make_room(gate, known);
        known.insert(pid, Process::born(lineage.first, started));
    }
    Ok(())
}

/// A process ends: its children keep the label that they were born with.
pub(super) fn exit(asker: Asker<'_>) -> Outcome {
    if asker.gate.subjects.are_alike() {
        // They get it with all others, in [`tell_apart`]; and ending grants nothing.
        return Ok(Answer::Continue);
    }
    let pid = asker.caller.identity()?.pid;
    label_children(asker.gate, pid)?;
    // Ending grants nothing.
    Ok(Answer::Continue)
}
