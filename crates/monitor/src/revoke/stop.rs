//! Stopping every thread of the sandbox for a moment.

use crate::{
    caller,
    gate::Gate,
    sys::ptrace::{self, Registers, State},
};
use rustix::io::{Errno, Result};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::{Duration, Instant},
};

/// What makes the kernel make a call anew, whatever signal was due (`ERESTARTNOINTR` of `linux/errno.h`).
const RESTART: i32 = 513;
/// A thread that has not stopped by then waits in the kernel for something else: the parent of a vfork, a slow disk.
const PATIENCE: Duration = Duration::from_millis(50);
/// Between two looks at threads that do not stop at once.
const PAUSE: Duration = Duration::from_micros(50);

/// The threads of the sandbox, held by the calling thread. Dropped, they go on.
pub(super) struct Stopped<'a> {
    gate: &'a Gate,
    threads: HashMap<u32, Thread>,
    /// Processes that somebody else traces, and processes that may not be traced.
    pub(super) refused: BTreeSet<u32>,
}

struct Thread {
    pid: u32,
    /// `None` while it has not stopped.
    signal: Option<i32>,
    /// A call was made in its place: its registers before.
    before: Option<(Registers, u64)>,
}

impl<'a> Stopped<'a> {
    /// Stops all threads of the sandbox but those that cannot stop now, which stop before their next instruction.
    pub(super) fn all(gate: &'a Gate) -> Result<Self> {
        let mut stopped = Self { gate, threads: HashMap::new(), refused: BTreeSet::new() };
        // While one runs it can make others; when none does, the list is complete.
        while stopped.seize_new()? {
            stopped.wait_for_all(PATIENCE);
        }
        Ok(stopped)
    }

    /// Seizes what is not held yet; whether there was any.
    fn seize_new(&mut self) -> Result<bool> {
        let mut any = false;
        for pid in self.gate.view.inside()? {
            let Ok(tids) = self.gate.view.threads(pid) else { continue };
            for tid in tids {
                if self.threads.contains_key(&tid) || self.refused.contains(&pid) {
                    continue;
                }
                match ptrace::seize(tid) {
                    Ok(()) => {
                        self.threads.insert(tid, Thread { pid, signal: None, before: None });
                        any = true;
                    }
                    Err(Errno::PERM) if is_alive(self.gate, tid) => {
                        self.refused.insert(pid);
                    }
                    Err(_) => {}
                }
            }
        }
        Ok(any)
    }

    fn wait_for_all(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut turns = 0;
        while self.look() {
            turns += 1;
            if Instant::now() > until {
                break;
            }
            if turns > 20 {
                std::thread::sleep(PAUSE);
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Notes who has stopped; whether somebody has not.
    fn look(&mut self) -> bool {
        for call in self.gate.passage.held() {
            // Not seized yet, it would see the errno: it comes back when it is.
            if self.threads.contains_key(&call.tid) {
                let again = Err(Errno::from_raw_os_error(RESTART));
                let _ = self.gate.listener.send_result(call.id, again);
            } else {
                self.gate.passage.hold(call);
            }
        }
        self.gate.waits.repeat(|tid| self.threads.contains_key(&tid));
        let mut waiting = false;
        self.threads.retain(|tid, thread| {
            if thread.signal.is_none() {
                match ptrace::poll(*tid) {
                    None => waiting = true,
                    Some(State::Gone) => return false,
                    Some(State::Stopped { signal }) => thread.signal = Some(signal),
                    Some(State::AtCall) => thread.signal = Some(0),
                }
            }
            true
        });
        waiting
    }

    /// How many threads are held.
    pub(super) fn count(&self) -> usize {
        self.threads.len()
    }

    /// The processes held, each with its threads that have stopped.
    pub(super) fn processes(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut processes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (tid, thread) in &self.threads {
            let threads = processes.entry(thread.pid).or_default();
            if thread.signal.is_some() {
                threads.push(*tid);
            }
        }
        processes
    }

    /// Waits until one of the threads of `pid` has stopped that are `able` to do what is to be done.
    pub(super) fn wait_for(
        &mut self,
        pid: u32,
        able: impl Fn(u32) -> bool,
        patience: Duration,
    ) -> Option<u32> {
        let until = Instant::now() + patience;
        loop {
            self.look();
            let own = self.threads.iter().filter(|(tid, it)| it.pid == pid && able(**tid));
            if let Some((tid, _)) = own.clone().find(|(_, thread)| thread.signal.is_some()) {
                return Some(*tid);
            }
            if own.count() == 0 || Instant::now() > until {
                return None;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Makes ready to make calls in the place of a stopped thread; where a `syscall` instruction lies.
    pub(super) fn borrow(&mut self, tid: u32) -> Result<(Registers, u64)> {
        let thread = self.threads.get_mut(&tid).ok_or(Errno::SRCH)?;
        let registers = match &thread.before {
            Some((registers, _)) => *registers,
            None => {
                let registers = Registers::of(tid)?;
                let mask = ptrace::block_signals(tid, !0)?;
                thread.before = Some((registers, mask));
                registers
            }
        };
        Ok((registers, super::inject::gadget(self.gate, tid, &registers)?))
    }

    /// Lets the threads of `pids` go on as if nothing had happened.
    pub(super) fn release(&mut self, pids: &BTreeSet<u32>) {
        let tids: Vec<u32> = self.threads.keys().copied().collect();
        for tid in tids {
            let Some(thread) = self.threads.get(&tid) else { continue };
            if let (true, Some(signal)) = (pids.contains(&thread.pid), thread.signal) {
                let thread = self.threads.remove(&tid);
                let before = thread.and_then(|thread| thread.before);
                if let Some((registers, mask)) = before {
                    give_back(tid, &registers, mask);
                } else {
                    let_go(tid, signal);
                }
            }
        }
    }

    /// Lets all go on; those that have not stopped, when they do.
    pub(super) fn release_all(mut self) {
        loop {
            let waiting = self.look();
            let all = self.threads.values().map(|thread| thread.pid).collect();
            self.release(&all);
            if !waiting {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Puts back what was borrowed. The kernel decides by the registers whether the call that was interrupted is made anew,
/// and does so only on the way from a stop of this kind.
fn give_back(tid: u32, registers: &Registers, mask: u64) {
    let restored = registers
        .restore(tid)
        .and_then(|()| ptrace::block_signals(tid, mask))
        .and_then(|_| ptrace::interrupt(tid))
        .and_then(|()| ptrace::go_on(tid));
    if restored.is_err() {
        // It is dead: nothing else makes these fail.
        return let_go(tid, 0);
    }
    loop {
        match ptrace::poll(tid) {
            None => std::thread::yield_now(),
            Some(State::Gone) => return,
            Some(State::AtCall) => {
                let _ = ptrace::go_on(tid);
            }
            Some(State::Stopped { signal }) => return let_go(tid, signal),
        }
    }
}

/// Lets a stopped thread go. One that was killed meanwhile is seen off instead: until its tracer has done so, its parent
/// could not.
fn let_go(tid: u32, signal: i32) {
    while ptrace::let_go(tid, signal).is_err() && ptrace::poll(tid) != Some(State::Gone) {
        std::thread::sleep(PAUSE);
    }
}

/// Whether a process has a thread that has not ended.
pub(super) fn lives(gate: &Gate, pid: u32) -> bool {
    gate.view.threads(pid).unwrap_or_default().into_iter().any(|tid| is_alive(gate, tid))
}

/// Whether a thread has not ended.
pub(super) fn is_alive(gate: &Gate, tid: u32) -> bool {
    let stat = caller::read_text(&gate.view, &format!("{tid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}
