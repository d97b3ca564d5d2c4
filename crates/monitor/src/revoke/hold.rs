//! A sandbox that stands still for as long as somebody outside wants.

use crate::gate::Gate;
use confine::launch::with_raised;
use rustix::{
    process::{Pid, PidfdFlags, pidfd_open},
    thread::CapabilitySet,
};
use std::{
    collections::BTreeSet,
    os::fd::{AsFd as _, OwnedFd},
    sync::{
        Arc, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};
use supervisor::{Standby, Stopped, is_running, thread};

/// Calls that are made on the program's behalf are waited for so long, and then the threads.
const PATIENCE: Duration = Duration::from_millis(300);
/// A traced process that does not stop by a signal within this time is killed.
const HALTING: Duration = Duration::from_secs(2);
/// What is made by others while these are stopped is looked for so long; what is found later is
/// killed.
const FREEZING: Duration = Duration::from_secs(5);
/// Between two looks at whether it is to go on.
const LOOK: Duration = Duration::from_millis(5);

/// A sandbox that stands still. Dropped, it goes on.
#[derive(Debug)]
pub struct Hold(Arc<AtomicBool>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Stops all threads, except that those whose calls wait do so when the wait is over. A change of
/// policy ends it. `None` if some cannot be stopped, or policy is being changed.
pub(crate) fn hold(gate: &Arc<Gate>, ended: Box<dyn FnOnce() + Send>) -> Option<Hold> {
    let standby = match gate.state.targets.quiesce.changing.try_lock() {
        Ok(standby) => standby,
        Err(TryLockError::Poisoned(standby)) => standby.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    begin(gate, standby, Traced::Go, ended)
}

/// The same, whoever is traced inside: for while this process is stopped itself, and so finds
/// nobody later. `None` also if others come for so long that nobody can say that all are held.
pub(crate) fn freeze(gate: &Arc<Gate>) -> Option<Hold> {
    let standby = &gate.state.targets.quiesce.changing;
    let standby = standby.lock().unwrap_or_else(PoisonError::into_inner);
    begin(gate, standby, Traced::Stop, Box::new(|| ()))
}

/// What is done about processes that somebody inside traces, so that they cannot be seized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traced {
    /// They go on, and so does everything.
    Go,
    /// They are stopped by a signal: who traces them stands still, and lets none go on.
    Stop,
}

fn begin(
    gate: &Arc<Gate>,
    mut standby: MutexGuard<'_, Standby>,
    traced: Traced,
    ended: Box<dyn FnOnce() + Send>,
) -> Option<Hold> {
    let (tell, told) = mpsc::channel();
    let held = Arc::clone(gate);
    let stand = move |end: &AtomicBool| {
        stand_still(&held, end, traced, &tell);
        ended();
    };
    let end = standby.begin(stand).ok()?;
    let stands = told.recv().unwrap_or(false);
    stands.then_some(Hold(end))
}

fn stand_still(gate: &Arc<Gate>, end: &AtomicBool, traced: Traced, tell: &mpsc::Sender<bool>) {
    // Those inside are left; calls that come meanwhile are made anew.
    gate.state.targets.quiesce.close(PATIENCE);
    let mut stopped = Stopped::beside_waits(&gate.state.targets);
    // Not complete while a call waits: that thread is seized, and does nothing before it stops.
    let mut seized = stopped.stop(Instant::now() + PATIENCE).is_ok();
    let refused = stopped.take_refused();
    Gate::reopen(gate);
    let mut halted = Vec::new();
    match traced {
        Traced::Stop => (halted, seized) = halt_all(gate, &mut stopped, refused),
        Traced::Go => seized &= refused.is_empty(),
    }
    let _ = tell.send(seized);
    while seized && !end.load(Ordering::Acquire) {
        std::thread::sleep(LOOK);
        stopped.scan();
    }
    // Those that have not stopped are let go by the end of this thread.
    let all: BTreeSet<u32> = stopped.processes().into_keys().collect();
    stopped.release(&all);
    for process in &halted {
        send(process, libc::SIGCONT);
    }
}

/// Stops processes by a signal that refuse to be seized, and seizes what they have made before;
/// those that it has stopped, and whether all are held.
fn halt_all(
    gate: &Arc<Gate>,
    stopped: &mut Stopped<'_>,
    refused: BTreeSet<u32>,
) -> (Vec<OwnedFd>, bool) {
    let halt = |pids: &BTreeSet<u32>, until: Instant| halt(gate, pids, until);
    let look = |waits: bool| {
        // Who traces one, and has not stopped yet, may be letting it go.
        let mut any = waits && stopped.scan();
        // What is seized makes nothing that is not; a look that fails says nothing. That some have
        // not stopped, whose calls wait, is no matter.
        any |= stopped.stop(Instant::now()).is_err() || stopped.is_restless();
        (any, stopped.take_refused())
    };
    until_quiet(refused, FREEZING, halt, look)
}

/// Halts `refused`, and those that `look` finds to be so, until that finds nobody who is not held;
/// what `halt` has halted, by the time that it is given, and whether nobody was found in the end.
/// What is found later than `freezing` has no time, and after as long again nobody looks.
fn until_quiet<T>(
    mut refused: BTreeSet<u32>,
    freezing: Duration,
    halt: impl Fn(&BTreeSet<u32>, Instant) -> Vec<T>,
    mut look: impl FnMut(bool) -> (bool, BTreeSet<u32>),
) -> (Vec<T>, bool) {
    let mut halted = Vec::new();
    let begun = Instant::now();
    // One that ends while the others are listed can have the kernel leave one out.
    let mut quiet = 0;
    while quiet < 2 && begun.elapsed() < 2 * freezing {
        let more = halt(&refused, (Instant::now() + HALTING).min(begun + freezing));
        let mut any = !more.is_empty();
        halted.extend(more);
        let (is_found, found) = look(!refused.is_empty() && begun.elapsed() < PATIENCE);
        any |= is_found || !found.is_empty();
        refused.extend(found);
        quiet = if any { 0 } else { quiet + 1 };
        if any {
            std::thread::sleep(LOOK);
        }
    }
    (halted, quiet == 2)
}

/// Stops processes by a signal, and kills those that do not stop in time; those that it has
/// stopped.
fn halt(gate: &Arc<Gate>, pids: &BTreeSet<u32>, until: Instant) -> Vec<OwnedFd> {
    let state = &gate.state;
    let runs = |pid: u32| {
        let threads = state.targets.tree.proc.threads(pid).unwrap_or_default();
        threads.into_iter().any(|tid| is_running(&state.targets.tree, tid))
    };
    // A number is that of a process inside once its descriptor is held.
    let open = |pid: &u32| {
        let process = pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()?;
        state.targets.tree.is_inside(*pid).then_some((*pid, process))
    };
    let all: Vec<(u32, OwnedFd)> = pids.iter().filter(|pid| runs(**pid)).filter_map(open).collect();
    while all.iter().any(|(pid, _)| runs(*pid)) {
        let signal = if Instant::now() < until { libc::SIGSTOP } else { libc::SIGKILL };
        all.iter().filter(|(pid, _)| runs(*pid)).for_each(|(_, process)| send(process, signal));
        if signal == libc::SIGKILL {
            break;
        }
        std::thread::sleep(LOOK);
    }
    all.into_iter().map(|(_, process)| process).collect()
}

fn send(process: &OwnedFd, signal: i32) {
    // One that has ended is as good.
    let _ = with_raised(CapabilitySet::KILL, || thread::signal(process.as_fd(), signal));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    const SOON: Duration = Duration::from_millis(200);

    /// Those that each look finds anew, `count` times; for each that was halted, whether it had no
    /// time to stop by itself, and when that was.
    fn halted(count: u32) -> (Vec<(bool, Duration)>, u32, bool) {
        let (begun, looks, known) = (Instant::now(), Cell::new(0), RefCell::new(BTreeSet::new()));
        let halt = |pids: &BTreeSet<u32>, until: Instant| {
            let new = pids.iter().filter(|pid| known.borrow_mut().insert(**pid));
            new.map(|_| {
                let now = begun.elapsed();
                (until <= Instant::now(), now)
            })
            .collect()
        };
        let look = |_| {
            looks.set(looks.get() + 1);
            let found = (looks.get() <= count).then_some(looks.get());
            (false, found.into_iter().collect())
        };
        let (halted, is_quiet) = until_quiet(BTreeSet::from([0]), SOON, halt, look);
        (halted, looks.get(), is_quiet)
    }

    #[test]
    fn what_is_found_late_is_killed_and_looked_for_no_longer_than_that_takes() {
        let begun = Instant::now();
        let (halted, looks, is_quiet) = halted(u32::MAX);
        assert!(!is_quiet, "somebody was found at every look");
        assert!(begun.elapsed() < 100 * SOON, "{:?}", begun.elapsed());
        assert!(looks > 2 && halted.len() as u32 == looks, "{looks} looks");
        assert!(!halted[0].0, "the first had no time to stop");
        assert!(halted.last().is_some_and(|(is_killed, _)| *is_killed), "the last had time");
        for (is_killed, when) in halted {
            assert!(is_killed || when <= SOON, "one was let stop after {when:?}");
        }
    }

    #[test]
    fn it_is_looked_until_nobody_was_found_twice() {
        let (halted, looks, is_quiet) = halted(3);
        assert_eq!((halted.len(), looks, is_quiet), (4, 6, true));
        assert!(halted.iter().all(|(is_killed, _)| !is_killed));
    }

    #[test]
    fn who_is_there_at_every_look_and_is_never_caught_is_not_held() {
        let halt = |_: &BTreeSet<u32>, _| Vec::<()>::new();
        let (_, is_quiet) = until_quiet(BTreeSet::new(), SOON, halt, |_| (true, BTreeSet::new()));
        assert!(!is_quiet);
    }
}
