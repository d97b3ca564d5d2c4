//! What descends from a process: finding it, and killing it where no PID namespace does.

use proc::{Orphans, Proc, Stat};
use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, pidfd_open,
        pidfd_send_signal, wait, waitid,
    },
};
use std::os::fd::BorrowedFd;

/// Whether `pid` is inside the sandbox: below `init`, or in a PID namespace of its own.
pub(super) fn is_inside(proc: BorrowedFd<'_>, pid: Pid, init: Pid) -> bool {
    let proc = Proc::new(proc);
    proc.status(number(pid)).is_ok_and(|status| status.has_own_pids())
        || proc.is_at_or_below(number(pid), number(init))
}

/// Whether a process stands still.
pub(super) fn is_stopped(proc: BorrowedFd<'_>, pid: Pid) -> bool {
    stat_of(proc, pid).is_some_and(|stat| stat.state == 'T')
}

/// The process group of a process, if it has a number here.
pub(super) fn group(proc: BorrowedFd<'_>, pid: Pid) -> Option<Pid> {
    stat_of(proc, pid).filter(|stat| stat.group > 0).and_then(|stat| Pid::from_raw(stat.group))
}

/// What `/proc` says of a process; `None` if it is gone.
pub(super) fn stat_of(proc: BorrowedFd<'_>, pid: Pid) -> Option<Stat> {
    Proc::new(proc).stat(number(pid)).ok()
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_pid().cast_unsigned()
}

/// Kills all descendants of this process, which is a subreaper, and waits until none is left.
///
/// A process that forks meanwhile leaves its child to this process, so each round finds what
/// the one before missed.
pub(super) fn kill_all(proc: BorrowedFd<'_>) {
    let proc = Proc::new(proc);
    while has_children() {
        for (pid, seen) in proc.descendants(number(getpid())) {
            kill_exactly(proc, pid, seen);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Kills what a sandbox has left to this process, whose other children live on: `init` and the
/// `orphans`, with what descends from them. Waits until none is left.
pub(super) fn kill_left(proc: BorrowedFd<'_>, init: Pid, orphans: &Orphans) {
    /// The kernel's list leaves others out when one ends while it is read.
    const LOOKS: u32 = 2;
    let (proc, own) = (Proc::new(proc), number(getpid()));
    let mut found_none = 0;
    while found_none < LOOKS && has_children() {
        let is_left = |it: &u32| *it == number(init) || orphans.include(&proc, *it);
        // Where none can be looked at, some may be there.
        let children = proc.children(own);
        let left: Option<Vec<u32>> =
            children.ok().map(|them| them.into_iter().filter(is_left).collect());
        let finds_none = left.as_ref().is_some_and(Vec::is_empty);
        found_none = if finds_none { found_none + 1 } else { 0 };
        for child in left.into_iter().flatten() {
            let itself = proc.stat(child).ok().map(|stat| (child, stat));
            for (pid, seen) in proc.descendants(child).into_iter().chain(itself) {
                kill_exactly(proc, pid, seen);
            }
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

/// Waits until the process behind `pidfd`, a child of this one, has ended; whether by itself.
pub(super) fn await_end(pidfd: BorrowedFd<'_>) -> bool {
    loop {
        match waitid(WaitId::PidFd(pidfd), WaitIdOptions::EXITED) {
            Err(Errno::INTR) => {}
            ended => return ended.is_ok_and(|it| it.is_some_and(|it| it.exited())),
        }
    }
}

/// Kills `pid` unless another process has got the number since it was `seen`.
fn kill_exactly(proc: Proc<BorrowedFd<'_>>, pid: u32, seen: Stat) {
    let Some(target) = Pid::from_raw(pid.cast_signed()) else { return };
    let Ok(pidfd) = pidfd_open(target, PidfdFlags::empty()) else { return };
    // The descriptor stands for one process, so what is true now stays true.
    if proc.started(pid) == Ok(seen.started) {
        // A process that is gone already is as good.
        let _ = pidfd_send_signal(pidfd, Signal::KILL);
    }
}
