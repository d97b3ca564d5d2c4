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
};

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

/// Stops every descendant of a process that is `uid`'s, and returns them. Repeats until a look
/// finds no new one: a stopped process makes no children. What another user has become, `uid` could
/// not stop either.
pub(crate) fn stop_descendants(of: u32, uid: u32) -> Vec<OwnedFd> {
    let (mut stopped, mut known) = (Vec::new(), HashSet::new());
    loop {
        let all = Proc::open().map(|proc| proc.descendants(of)).unwrap_or_default();
        let all = all.into_iter().map(|(pid, stat)| (pid, stat.started));
        let new: Vec<_> = all.filter(|it| !known.contains(it)).collect();
        if new.is_empty() {
            return stopped;
        }
        for (pid, started) in new {
            known.insert((pid, started));
            if let Ok(fd) = open(pid, started)
                && is_of(pid, uid)
                && pidfd_send_signal(&fd, Signal::STOP).is_ok()
            {
                stopped.push(fd);
            }
        }
    }
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
    use std::process::{Child, Command};

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
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let own = rustix::process::getuid().as_raw();
        assert!(stop_descendants(child.id(), own + 1).is_empty(), "another user's");
        let stopped = stop_descendants(child.id(), own);
        assert_eq!(stopped.len(), 3);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(children(&child).into_iter().all(|pid| state(pid) == Some('T')));
        assert_ne!(state(child.id()), Some('T'));
        go_on(&stopped);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(children(&child).into_iter().all(|pid| state(pid) != Some('T')));
        stopped.iter().for_each(kill);
        child.kill().unwrap();
        child.wait().unwrap();
        while stopped.iter().any(lives) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn another_process_with_the_same_number_is_not_opened() {
        let own = std::process::id();
        let started = started(own).unwrap();
        assert!(open(own, started).is_ok_and(|fd| lives(&fd)));
        assert!(open(own, started + 1).is_err());
    }
}
