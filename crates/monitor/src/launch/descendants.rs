//! Finding and killing the descendants of a process, where no pid namespace does it.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, pidfd_open,
    pidfd_send_signal, wait, waitid,
};

/// What `/proc/PID/stat` says that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// `T` for a stopped process.
    pub(super) state: u8,
    pub(super) parent: i32,
    /// In clock ticks since the start of the system; tells two users of one pid apart.
    started: u64,
}

/// The state of the process `pid`; `None` if there is none.
pub(super) fn stat(proc: BorrowedFd<'_>, pid: i32) -> Option<Stat> {
    parse_stat(&read(proc, &format!("{pid}/stat"))?)
}

/// Whether `pid` is inside the sandbox: below `init`, or in a pid namespace of its own.
pub(super) fn is_inside(proc: BorrowedFd<'_>, pid: Pid, init: Pid) -> bool {
    let Some(status) = read(proc, &format!("{}/status", pid.as_raw_pid())) else { return false };
    let status = String::from_utf8_lossy(&status);
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    if ids.is_some_and(|ids| ids.split_whitespace().count() > 1) {
        return true;
    }
    let parents = std::iter::successors(Some(pid.as_raw_pid()), |&pid| {
        stat(proc, pid).map(|stat| stat.parent).filter(|&parent| parent > 0)
    });
    parents.into_iter().any(|ancestor| ancestor == init.as_raw_pid())
}

/// Kills all descendants of this process, which is a subreaper, and waits until none is left.
///
/// A process that forks meanwhile leaves its child to this process, so each round finds what
/// the one before missed.
pub(super) fn kill_all(proc: BorrowedFd<'_>) {
    while has_children() {
        for (pid, seen) in descendants(proc, getpid().as_raw_pid()) {
            kill_exactly(proc, pid, seen);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Collects the children that have ended; whether there are others.
fn has_children() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Waits until the process behind `pidfd`, a child of this one, has ended.
pub(super) fn await_end(pidfd: BorrowedFd<'_>) {
    while let Err(Errno::INTR) = waitid(WaitId::PidFd(pidfd), WaitIdOptions::EXITED) {}
}

/// Kills `pid` unless another process has got the number since it was `seen`.
fn kill_exactly(proc: BorrowedFd<'_>, pid: i32, seen: Stat) {
    let Some(target) = Pid::from_raw(pid) else { return };
    let Ok(pidfd) = pidfd_open(target, PidfdFlags::empty()) else { return };
    // The descriptor stands for one process, so what is true now stays true.
    if stat(proc, pid).is_some_and(|now| now.started == seen.started) {
        // A process that is gone already is as good.
        let _ = pidfd_send_signal(pidfd, Signal::KILL);
    }
}

fn descendants(proc: BorrowedFd<'_>, root: i32) -> Vec<(i32, Stat)> {
    let all: HashMap<i32, Stat> =
        pids(proc).into_iter().filter_map(|pid| Some((pid, stat(proc, pid)?))).collect();
    let below = |pid: i32| {
        let mut parents =
            std::iter::successors(all.get(&pid), |stat| all.get(&stat.parent)).take(all.len());
        parents.any(|stat| stat.parent == root)
    };
    all.iter().filter(|(pid, _)| below(**pid)).map(|(pid, stat)| (*pid, *stat)).collect()
}

fn pids(proc: BorrowedFd<'_>) -> Vec<i32> {
    // A descriptor of its own, as `proc` may be one that only names the directory.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listing = openat(proc, ".", flags, Mode::empty()).and_then(Dir::new);
    let Ok(dir) = listing else { return Vec::new() };
    dir.filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok()).collect()
}

fn read(proc: BorrowedFd<'_>, path: &str) -> Option<Vec<u8>> {
    let file = openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut bytes).ok()?;
    Some(bytes)
}

/// Reads a line of `stat`, whose second field, the name, may hold anything.
fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let end = bytes.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(&bytes[end + 1..]).ok()?;
    let mut fields = rest.split_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of the line; the state was field 3.
    let started = fields.nth(17)?.parse().ok()?;
    Some(Stat { state, parent, started })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let line = b"7 (a) R 1 (b) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2\n";
        let want = Stat { state: b'S', parent: 3, started: 12345 };
        assert_eq!(parse_stat(line), Some(want));
        assert_eq!(parse_stat(b"7 (a"), None);
        assert_eq!(parse_stat(b"7 (a) S 3"), None);
    }
}
