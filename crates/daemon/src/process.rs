//! Processes outside: whether one is still the same, and stopping, continuing and killing what
//! descends from it.

use proc::Proc;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use std::{
    collections::HashSet,
    io,
    os::fd::{AsFd, OwnedFd},
    time::Instant,
};

/// How often freezing looks for processes that were not there before.
const MOST_LOOKS: usize = 32;

/// When a process began, in clock ticks since the machine did; `None` if there is no such process.
pub(crate) fn started(pid: u32) -> Option<u64> {
    Proc::open().and_then(|proc| proc.started(pid)).ok()
}

/// The process that began at `started` with this PID, if it still runs.
pub(crate) fn open(pid: u32, started: u64) -> io::Result<OwnedFd> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let fd = pidfd_open(number.ok_or(io::ErrorKind::NotFound)?, PidfdFlags::empty())?;
    // The descriptor stands for one process, so what is true now stays true.
    if self::started(pid) == Some(started) { Ok(fd) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Whether the process has not ended.
pub(crate) fn lives(pidfd: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ended| ended == 0)
}

/// Kills it. One that has ended already is as good.
pub(crate) fn kill(pidfd: &impl AsFd) {
    let _ = pidfd_send_signal(pidfd, Signal::KILL);
}

/// Kills it, if `uid` may.
pub(crate) fn kill_if_of(pidfd: &impl AsFd, pid: u32, uid: u32) {
    // While it lives, its number is its own.
    if is_of(pid, uid) && lives(pidfd) {
        kill(pidfd);
    }
}

/// Stops the descendants of a process that are `uid`'s, and returns them. What another user has
/// become, `uid` could not stop either.
pub(crate) fn stop_descendants(of: u32, uid: u32, until: Instant) -> Vec<OwnedFd> {
    let look = || {
        let all = Proc::open().map(|proc| proc.descendants(of)).unwrap_or_default();
        all.into_iter().map(|(pid, stat)| (pid, stat.started)).collect()
    };
    stop_all(look, uid, until)
}

/// Stops what `look` finds, until it finds nobody new to stop: a stopped process makes no children.
/// Those that cannot be stopped may make more for ever, so they do not count as new, and it ends
/// after [`MOST_LOOKS`] and at `until`.
fn stop_all(mut look: impl FnMut() -> Vec<(u32, u64)>, uid: u32, until: Instant) -> Vec<OwnedFd> {
    let (mut stopped, mut known) = (Vec::new(), HashSet::new());
    for _ in 0..MOST_LOOKS {
        let before = stopped.len();
        let new: Vec<_> = look().into_iter().filter(|it| !known.contains(it)).collect();
        for (pid, started) in new {
            if Instant::now() >= until {
                return stopped;
            }
            if let Ok(fd) = open(pid, started)
                && is_of(pid, uid)
                && pidfd_send_signal(&fd, Signal::STOP).is_ok()
            {
                known.insert((pid, started));
                stopped.push(fd);
            }
        }
        if stopped.len() == before {
            break;
        }
    }
    stopped
}

/// Whether `uid` may signal a process: its real, effective and saved user are all `uid`, or `uid`
/// is root. The caller holds the process, so that the number is its own.
fn is_of(pid: u32, uid: u32) -> bool {
    let Ok(status) = Proc::open().and_then(|proc| proc.status(pid)) else { return false };
    uid == 0 || status.users().is_some_and(|users| users.into_iter().all(|it| it == uid))
}

/// Lets processes go on.
pub(crate) fn go_on(stopped: &[OwnedFd]) {
    for process in stopped {
        let _ = pidfd_send_signal(process, Signal::CONT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        process::{Child, Command},
        sync::mpsc,
        thread,
        time::Duration,
    };

    fn state(pid: u32) -> Option<char> {
        Some(Proc::open().ok()?.stat(pid).ok()?.state)
    }

    fn children(child: &Child) -> Vec<u32> {
        let ours = Proc::open().expect("/proc").descendants(child.id());
        ours.into_iter().map(|(pid, _)| pid).collect()
    }

    #[test]
    fn all_descendants_are_stopped_and_go_on_again() {
        let script = "(sleep 60 & sleep 60 & wait) & wait";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        while children(&child).len() < 3 {
            thread::sleep(Duration::from_millis(5));
        }
        let own = rustix::process::getuid().as_raw();
        let later = Instant::now() + Duration::from_secs(60);
        assert!(stop_descendants(child.id(), own + 1, later).is_empty(), "another user's");
        let stopped = stop_descendants(child.id(), own, later);
        assert_eq!(stopped.len(), 3);
        thread::sleep(Duration::from_millis(20));
        assert!(children(&child).into_iter().all(|pid| state(pid) == Some('T')));
        assert_ne!(state(child.id()), Some('T'));
        go_on(&stopped);
        thread::sleep(Duration::from_millis(20));
        assert!(children(&child).into_iter().all(|pid| state(pid) != Some('T')));
        stopped.iter().for_each(kill);
        child.kill().unwrap();
        child.wait().unwrap();
        while stopped.iter().any(lives) {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// What freezing stops if each look finds what `each` returns; `None` if it does not end.
    fn stopped(
        mut each: impl FnMut() -> (u32, u64) + Send + 'static,
        within: Duration,
    ) -> Option<usize> {
        let own = rustix::process::getuid().as_raw();
        let (done, ended) = mpsc::channel();
        let mut looks = 0;
        let look = move || {
            looks += 1;
            assert!(looks < 1_000, "it looks for ever");
            vec![each()]
        };
        thread::spawn(move || {
            let stopped = stop_all(look, own, Instant::now() + within);
            stopped.iter().for_each(kill);
            done.send(stopped.len())
        });
        ended.recv_timeout(Duration::from_secs(20)).ok()
    }

    #[test]
    fn freezing_ends_while_those_who_cannot_be_frozen_make_more() {
        let mut last = 0;
        let foreign = move || {
            last += 1;
            (1, u64::MAX - last)
        };
        assert_eq!(stopped(foreign, Duration::from_secs(60)), Some(0));
    }

    #[test]
    fn freezing_ends_after_so_many_looks_and_at_its_time() {
        let made = || {
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            let found = (child.id(), started(child.id()).unwrap());
            thread::spawn(move || child.wait());
            found
        };
        assert_eq!(stopped(made, Duration::from_secs(60)), Some(MOST_LOOKS));
        assert_eq!(stopped(made, Duration::ZERO), Some(0));
    }

    #[test]
    fn another_process_with_the_same_number_is_not_opened() {
        let own = std::process::id();
        let started = started(own).unwrap();
        assert!(open(own, started).is_ok_and(|fd| lives(&fd)));
        assert!(open(own, started + 1).is_err());
    }
}
