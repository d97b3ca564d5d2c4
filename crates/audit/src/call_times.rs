//! What deciding takes: how often each system call waited for the monitor, and how long that had
//! it.
//!
//! Only where somebody wants to know: two looks at the clock are a hundredth of a decision.

use confine::{Handler, handler};
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};
use supervisor::Notification;
use syscalls::Sysno;

/// Numbers of system calls that are kept apart, for each manager.
const CALLS: usize = 1024;
/// Who decides calls, as `entry_of` numbers them.
const MANAGERS: [&str; 5] = ["none", "file", "process", "socket", "refused"];

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
        let entries = || (0..MANAGERS.len() * CALLS).map(|_| Entry::default()).collect();
        Self(is_wanted.then(entries))
    }

    /// Does the work of a call, and keeps what it took.
    pub fn taken<T>(&self, call: &Notification, work: impl FnOnce() -> T) -> T {
        let entry = self.0.as_ref().and_then(|entries| entries.get(entry_of(call)?));
        let Some(entry) = entry else { return work() };
        let begin = Instant::now();
        let done = work();
        let nanoseconds = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        entry.nanoseconds.fetch_add(nanoseconds, Relaxed);
        entry.times.fetch_add(1, Relaxed);
        done
    }

    /// What was decided, the dearest first.
    pub fn all(&self) -> Vec<CallTime> {
        let spent = |(at, entry): (usize, &Entry)| {
            let call = Sysno::new(at % CALLS).filter(|_| entry.times.load(Relaxed) > 0)?;
            Some(CallTime {
                manager: MANAGERS[at / CALLS],
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

/// Where a call is kept.
fn entry_of(call: &Notification) -> Option<usize> {
    let number = usize::try_from(call.nr).ok().filter(|number| *number < CALLS)?;
    let manager = match handler(Sysno::new(number)?, &call.args) {
        None => 0,
        Some(Handler::File) => 1,
        Some(Handler::Process | Handler::Exec) => 2,
        Some(Handler::Socket) => 3,
        Some(Handler::Refused) => 4,
    };
    Some(manager * CALLS + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(nr: i32, second: u64) -> Notification {
        Notification { id: 1, tid: 1, nr, args: [0, second, 0, 0, 0, 0] }
    }

    #[test]
    fn calls_are_counted_by_their_manager_the_dearest_first() {
        let times = CallTimes::new(true);
        let long = || std::thread::sleep(Duration::from_millis(2));
        times.taken(&call(Sysno::openat as i32, 0), || ());
        times.taken(&call(Sysno::execve as i32, 0), long);
        times.taken(&call(Sysno::openat as i32, 0), || ());
        times.taken(&call(-1, 0), || ());
        let all = times.all();
        let seen: Vec<_> = all.iter().map(|it| (it.manager, it.call, it.times)).collect();
        assert_eq!(seen, [("process", "execve", 1), ("file", "openat", 2)]);
        assert!(all[0].time >= Duration::from_millis(2), "{all:?}");
    }

    #[test]
    fn requests_of_ioctl_are_counted_by_who_decides_them() {
        let times = CallTimes::new(true);
        for request in [libc::TIOCSPGRP, libc::TIOCSTI, libc::TIOCSPGRP] {
            times.taken(&call(Sysno::ioctl as i32, request), || ());
        }
        let mut seen: Vec<_> = times.all().iter().map(|it| (it.manager, it.times)).collect();
        seen.sort_unstable();
        assert_eq!(seen, [("process", 2), ("refused", 1)]);
    }

    #[test]
    fn nothing_is_kept_that_nobody_wants() {
        let times = CallTimes::new(false);
        assert_eq!(times.taken(&call(Sysno::openat as i32, 0), || 7), 7);
        assert!(times.all().is_empty());
    }
}
