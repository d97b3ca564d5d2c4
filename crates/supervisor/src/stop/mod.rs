//! Stopping every thread of the sandbox for a moment.

mod borrowed;
mod seizing;

use crate::{
    execs::Execs,
    signal::kill_inside,
    sys::{
        ptrace::{self, Registers, State},
        thread::{same_descriptors, same_memory},
    },
    targets::Targets,
};
use borrowed::Borrowed;
use proc::{ProcessTree, none_if_gone};
use rustix::io::{Errno, Result};
pub use seizing::help_to_seize;
use seizing::is_traced;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::{Duration, Instant},
};
use syscalls::Sysno;

/// What makes the kernel make a call anew, whatever signal was due (`ERESTARTNOINTR` of
/// `linux/errno.h`).
const RESTART: i32 = 513;
/// A thread that has not stopped by then waits in the kernel for something else: the parent of a
/// vfork, a slow disk.
const PATIENCE: Duration = Duration::from_millis(50);
/// So often is looked without a pause: a thread that does not run stops within microseconds.
const TURNS: u32 = 200;
/// Between two looks at threads that do not stop at once.
pub const PAUSE: Duration = Duration::from_micros(50);
/// So long is a thread waited for that was killed.
const DYING: Duration = Duration::from_secs(1);

/// The threads of the sandbox, held by the calling thread until [`Stopped::release`]. Dropped
/// without, they go on only when that thread ends.
pub struct Stopped<'a> {
    targets: &'a Targets,
    threads: HashMap<u32, Thread>,
    /// Processes that somebody else traces, and processes that may not be traced.
    refused: BTreeSet<u32>,
    /// Those of them that were spoken of.
    left_alone: BTreeSet<u32>,
    /// Calls that wait in their place go on waiting, and stop when they are done.
    leaves_waits: bool,
    /// A call that is made for a caller who is gone has not ended: what it does can come through.
    gone_waits: bool,
    /// Threads that had ended when they were to be seized at the last look, each with its process.
    ended: BTreeMap<u32, u32>,
    /// How many have ended that were held.
    gone: u64,
    /// At the last look somebody was found anew, or had ended: there may be more.
    is_restless: bool,
}

struct Thread {
    pid: u32,
    /// `None` while it has not stopped.
    signal: Option<i32>,
    /// Calls are made in its place: what it was before.
    before: Option<Borrowed>,
}

impl<'a> Stopped<'a> {
    /// Nobody yet.
    pub fn new(targets: &'a Targets) -> Self {
        let (threads, refused, left_alone, ended) = Default::default();
        Self {
            targets,
            threads,
            refused,
            left_alone,
            leaves_waits: false,
            gone_waits: false,
            ended,
            gone: 0,
            is_restless: true,
        }
    }

    /// The same, which lets calls wait that are made in the place of threads.
    pub fn beside_waits(targets: &'a Targets) -> Self {
        Self { leaves_waits: true, ..Self::new(targets) }
    }

    pub(crate) fn targets(&self) -> &'a Targets {
        self.targets
    }

    /// Stops all threads of the sandbox. Whether they stand still, as far as they can be stopped;
    /// else something is to be done about those that refuse it, or time is over.
    pub fn stop(&mut self, until: Instant) -> Result<bool> {
        self.targets.seizing.during(|| self.stop_all(until))
    }

    fn stop_all(&mut self, until: Instant) -> Result<bool> {
        let mut quiet = 0;
        loop {
            // One that runs can make others, and what one has made that ends during a look can move
            // to where was looked already: to whoever takes orphans, where the next look finds it.
            // When none ran before two looks that found nobody new, and nobody that was listed
            // ended, the list is complete.
            let (waiting, gone) = (self.is_waiting(), self.gone);
            let is_new = self.seize_new()?;
            self.scan();
            self.is_restless = is_new || self.gone != gone;
            if self.is_restless {
                quiet = 0;
                self.wait_for_all(PATIENCE);
            } else if waiting {
                quiet = 0;
                std::thread::sleep(PAUSE);
                self.scan();
            } else {
                quiet += 1;
            }
            if quiet == 2 {
                return Ok(self.refused.is_empty());
            }
            if !self.refused.is_empty() || Instant::now() > until {
                return Ok(false);
            }
        }
    }

    /// Whether the last look by [`Stopped::stop`] found somebody who was not held before it, or who
    /// had ended, and so may have made another.
    pub fn is_restless(&self) -> bool {
        self.is_restless
    }

    /// The processes that cannot be stopped; they are not spoken of again.
    pub fn take_refused(&mut self) -> BTreeSet<u32> {
        let refused = std::mem::take(&mut self.refused);
        self.left_alone.extend(&refused);
        refused
    }

    /// Whether somebody has not stopped who is to be waited for: not the parent by vfork(2) of a
    /// process that is held, as it does nothing until that goes on.
    fn is_waiting(&self) -> bool {
        let mut late = self.late();
        self.gone_waits || late.any(|(tid, thread)| !self.waits_for_child(tid, thread.pid))
    }

    fn waits_for_child(&self, tid: u32, pid: u32) -> bool {
        const VFORK: u64 = (libc::CLONE_VFORK | libc::CLONE_VM) as u64;
        let shares = self.targets.tree.proc.syscall(tid).is_some_and(|(number, flags)| {
            number == Sysno::vfork.id() || number == Sysno::clone.id() && flags & VFORK == VFORK
        });
        shares
            && self.threads.values().any(|other| {
                other.pid != pid
                    && other.signal.is_some()
                    && self.targets.tree.proc.identity(other.pid).is_ok_and(|it| it.parent == pid)
                    && same_memory(tid, other.pid)
            })
    }

    /// The processes that are to be waited for, and those whose threads end before they are seized.
    pub fn waited_for(&self) -> BTreeSet<u32> {
        let late = self.late().filter(|(tid, thread)| !self.waits_for_child(*tid, thread.pid));
        let moving = self.ended.values().copied().filter(|pid| lives(&self.targets.tree, *pid));
        late.map(|(_, thread)| thread.pid).chain(moving).collect()
    }

    fn hold(&mut self, pid: u32, tid: u32, signal: Option<i32>) {
        self.threads.insert(tid, Thread { pid, signal, before: None });
    }

    fn wait_for_all(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        for turn in 0.. {
            if !self.scan() || Instant::now() > until {
                break;
            }
            if turn < TURNS {
                std::thread::yield_now();
            } else if self.is_waiting() {
                std::thread::sleep(PAUSE);
            } else {
                break;
            }
        }
    }

    /// Notes which threads have stopped or begun; whether one has not stopped.
    pub fn scan(&mut self) -> bool {
        // Not seized yet, a thread would see the errno: it comes back when it is.
        for call in self.targets.quiesce.take_held(|tid| self.threads.contains_key(&tid)) {
            let again = Err(Errno::from_raw_os_error(RESTART));
            let _ = self.targets.listener.send_result(call.id, again);
        }
        if !self.leaves_waits {
            let waits = &self.targets.quiesce.waits;
            waits.repeat(|tid| self.threads.contains_key(&tid));
            self.gone_waits = waits.end_gone(&self.targets.listener);
        }
        while let Some((tid, state)) = ptrace::poll_any() {
            self.note(tid, state);
        }
        // One that executes a program takes over the number of its process, and is not heard of
        // under its own.
        let late: Vec<(u32, u32)> = self.late().map(|(tid, thread)| (tid, thread.pid)).collect();
        for (tid, pid) in late {
            if let Some(state) = ptrace::poll(tid) {
                self.note(tid, state);
                if state == State::Gone && is_running(&self.targets.tree, pid) {
                    self.hold(pid, pid, None);
                }
            }
        }
        self.gone_waits || self.late().next().is_some()
    }

    fn note(&mut self, tid: u32, state: State) {
        let signal = match state {
            State::Gone => {
                self.threads.remove(&tid);
                self.gone += 1;
                return;
            }
            State::Stopped { signal } => Some(signal),
            State::AtCall => Some(0),
            // On its way to the program, before which it stops: if it is told so again, as every
            // stop takes that back.
            State::Forked => {
                ptrace::interrupt(tid).and_then(|()| ptrace::go_on(tid)).map_or(Some(0), |()| None)
            }
        };
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.signal = signal;
        } else {
            // One that a thread was making when it was seized.
            let pid = self.targets.tree.proc.identity(tid).map_or(tid, |it| it.pid);
            self.hold(pid, tid, signal);
        }
    }

    /// The threads that have not stopped: they are in calls that began before.
    fn late(&self) -> impl Iterator<Item = (u32, &Thread)> {
        let all = self.threads.iter().map(|(tid, thread)| (*tid, thread));
        all.filter(|(_, thread)| thread.signal.is_none())
    }

    /// How many threads are held.
    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// The processes held, each with its threads that have stopped.
    pub fn processes(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut processes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (tid, thread) in &self.threads {
            let threads = processes.entry(thread.pid).or_default();
            if thread.signal.is_some() {
                threads.push(*tid);
            }
        }
        processes
    }

    /// Makes ready to make calls in the place of a stopped thread; its own registers.
    pub fn borrow(&mut self, tid: u32) -> Result<Registers> {
        let thread = self.threads.get_mut(&tid).ok_or(Errno::SRCH)?;
        let before = match thread.before.take() {
            Some(before) => before,
            None => Borrowed::take(tid)?,
        };
        Ok(thread.before.insert(before).registers)
    }

    /// Ends, by `EACCES`, what waits for a lock of one of these descriptors of a process, in the
    /// table that `tid` uses: made anew, the call would lock what stands at that number now.
    pub fn end_locks(&mut self, (pid, tid): (u32, u32), numbers: &[i32]) {
        let stand = self.threads.iter_mut();
        let stand = stand.filter(|(_, thread)| thread.pid == pid && thread.signal.is_some());
        for (own, thread) in stand.filter(|(own, _)| **own == tid || same_descriptors(**own, tid)) {
            let registers = match &thread.before {
                Some(before) => Ok(before.registers),
                None => Registers::of(*own),
            };
            let Ok(registers) = registers else { continue };
            if !registers.locks().is_some_and(|number| numbers.contains(&number)) {
                continue;
            }
            let ended = registers.returning(Errno::ACCESS);
            match &mut thread.before {
                Some(before) => before.registers = ended,
                // It is dead: nothing else makes this fail.
                None => drop(ended.restore(*own)),
            }
        }
    }

    /// Lets the threads of `pids` go on as if nothing had happened.
    pub fn release(&mut self, pids: &BTreeSet<u32>) {
        let mut tids: Vec<u32> = self.threads.keys().copied().collect();
        // Of a process that was killed, the first thread's end is collected only after all others.
        tids.sort_by_key(|tid| self.threads.get(tid).is_some_and(|thread| thread.pid == *tid));
        for tid in tids {
            let Some(thread) = self.threads.get(&tid) else { continue };
            if let (true, Some(signal)) = (pids.contains(&thread.pid), thread.signal) {
                let thread = self.threads.remove(&tid);
                let before = thread.and_then(|thread| thread.before);
                match before {
                    Some(before) => before.give_back(tid, signal),
                    None => let_go(tid, signal),
                }
            }
        }
    }

    /// Whether a thread of `pid` has not stopped.
    pub fn is_late(&self, pid: u32) -> bool {
        self.late().any(|(_, thread)| thread.pid == pid)
    }
}

/// Lets a stopped thread go. The end of one that was killed meanwhile is collected instead: its
/// parent could not do so before its tracer has. What takes longer is done by the end of this
/// thread.
fn let_go(tid: u32, signal: i32) {
    let until = Instant::now() + DYING;
    while ptrace::let_go(tid, signal).is_err()
        && ptrace::poll(tid) != Some(State::Gone)
        && Instant::now() < until
    {
        std::thread::sleep(PAUSE);
    }
}

/// Whether somebody inside traces a thread of a process that has several: so he can hold up an exec
/// of the others.
pub fn can_be_held_up(tree: &ProcessTree, pid: u32) -> bool {
    tree.proc.threads(pid).is_ok_and(|tids| is_traced(tree, &tids))
}

/// Ends processes whose exec is held up, and has nobody wait for them.
pub fn end_held_up_execs(execs: &Execs, tree: &ProcessTree) {
    execs.end_held_up(|pid| can_be_held_up(tree, pid), |pid| kill_inside(tree, pid));
}

/// Whether a process has a thread that has not ended; yes when in doubt.
pub fn lives(tree: &ProcessTree, pid: u32) -> bool {
    let threads = tree.proc.threads(pid);
    threads.map_or(true, |tids| tids.into_iter().any(|tid| is_alive(tree, tid)))
}

/// Whether a thread has not ended; yes when in doubt.
pub fn is_alive(tree: &ProcessTree, tid: u32) -> bool {
    !matches!(run_state(tree, tid), Ok(None | Some('Z' | 'X')))
}

/// Whether a thread neither has ended nor stands still; yes when in doubt.
pub fn is_running(tree: &ProcessTree, tid: u32) -> bool {
    !matches!(run_state(tree, tid), Ok(None | Some('Z' | 'X' | 't' | 'T')))
}

/// The state of a thread as a letter: field 3 of proc_pid_stat(5). `None` if there is no such
/// thread.
fn run_state(tree: &ProcessTree, tid: u32) -> Result<Option<char>> {
    none_if_gone(tree.proc.stat(tid).map(|stat| Some(stat.state)))
}
