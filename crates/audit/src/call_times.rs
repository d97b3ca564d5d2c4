//! What deciding takes: how often each system call waited for the monitor, and how long that had
//! it.
//!
//! Only where somebody wants to know: two looks at the clock are a hundredth of a decision.

use confine::{Handler, handler};
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};
use syscalls::Sysno;

/// Numbers of system calls that are kept apart.
const CALLS: usize = 1024;

/// How often a system call was decided, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTime {
    /// The object manager that decided it.
    pub manager: &'static str,
    /// The call.
    pub call: &'static str,
    /// How often.
    pub times: u64,
    /// From receiving to answering it, in all. Without what waited for a peer meanwhile.
    pub time: Duration,
}

/// The account of a run.
#[derive(Default)]
pub struct CallTimes(Option<Box<[Entry]>>);

#[derive(Default)]
struct Entry {
    times: AtomicU64,
    nanoseconds: AtomicU64,
}

impl CallTimes {
    /// None yet; none ever, if nobody wants them.
    pub fn new(is_wanted: bool) -> Self {
        Self(is_wanted.then(|| (0..CALLS).map(|_| Entry::default()).collect()))
    }

    /// Does the work of a call, and keeps what it took.
    pub fn taken<T>(&self, number: i32, work: impl FnOnce() -> T) -> T {
        let entry = self.0.as_ref().zip(usize::try_from(number).ok());
        let Some(entry) = entry.and_then(|(entries, number)| entries.get(number)) else {
            return work();
        };
        let begin = Instant::now();
        let done = work();
        let nanoseconds = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        entry.nanoseconds.fetch_add(nanoseconds, Relaxed);
        entry.times.fetch_add(1, Relaxed);
        done
    }

    /// What was decided, the dearest first.
    pub fn all(&self) -> Vec<CallTime> {
        let spent = |(number, entry): (usize, &Entry)| {
            let call = Sysno::new(number).filter(|_| entry.times.load(Relaxed) > 0)?;
            Some(CallTime {
                manager: manager(call),
                call: call.name(),
                times: entry.times.load(Relaxed),
                time: Duration::from_nanos(entry.nanoseconds.load(Relaxed)),
            })
        };
        let mut all: Vec<CallTime> = self
            .0
            .iter()
            .flat_map(|entries| entries.iter().enumerate())
            .filter_map(spent)
            .collect();
        all.sort_by_key(|spent| std::cmp::Reverse(spent.time));
        all
    }
}

fn manager(call: Sysno) -> &'static str {
    match handler(call) {
        Some(Handler::File) => "file",
        Some(Handler::Process | Handler::Exec) => "process",
        Some(Handler::Socket) => "socket",
        Some(Handler::Refused) => "refused",
        None => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_their_manager_the_dearest_first() {
        let times = CallTimes::new(true);
        let long = || std::thread::sleep(Duration::from_millis(2));
        times.taken(Sysno::openat as i32, || ());
        times.taken(Sysno::execve as i32, long);
        times.taken(Sysno::openat as i32, || ());
        times.taken(-1, || ());
        let all = times.all();
        let seen: Vec<_> = all.iter().map(|it| (it.manager, it.call, it.times)).collect();
        assert_eq!(seen, [("process", "execve", 1), ("file", "openat", 2)]);
        assert!(all[0].time >= Duration::from_millis(2), "{all:?}");
    }

    #[test]
    fn nothing_is_kept_that_nobody_wants() {
        let times = CallTimes::new(false);
        assert_eq!(times.taken(Sysno::openat as i32, || 7), 7);
        assert!(times.all().is_empty());
    }
}
