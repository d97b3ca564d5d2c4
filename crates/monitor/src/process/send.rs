//! Signalling one process or thread by its number, where there are several domains and the run has
//! no numbers of its own: by the time that a caller without processor time (`SCHED_IDLE`) makes the
//! call, the number may be that of a process in another domain. So the monitor signals whom it has
//! asked about, by a descriptor, and says who has signalled.

use super::others::{allow_one, of_signal};
use crate::call::{Answer, Asker, CallResult, PIDFD_THREAD};
use proc::Identity;
use rustix::{
    io::{Errno, Result},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::os::fd::AsFd as _;
use supervisor::thread::{self, SignalInfo};
use syscalls::Sysno;

/// Whether a signal to `pid` is for [`to_one`]: no number of the caller's own comes to another
/// process while it makes a call.
pub(super) fn is_by_monitor(asker: Asker<'_>, own: &Identity, pid: u32) -> bool {
    let is_own = pid == own.inner_pid || pid == own.inner_tid;
    let signals = !matches!(asker.number, Sysno::pidfd_open | Sysno::pidfd_send_signal);
    signals && !is_own && own.pid == own.inner_pid && !asker.state.subjects.is_one()
}

/// kill(2), tkill(2), tgkill(2), rt_sigqueueinfo(2) and rt_tgsigqueueinfo(2) of another process.
pub(super) fn to_one(asker: Asker<'_>, own: &Identity, signal: i32) -> CallResult {
    let int = |n| asker.caller.int(n);
    let (thread, info) = match asker.number {
        Sysno::tkill => (Some(int(0)), None),
        Sysno::tgkill => (Some(int(1)), None),
        Sysno::rt_tgsigqueueinfo => (Some(int(1)), Some(3)),
        Sysno::rt_sigqueueinfo => (None, Some(2)),
        _ => (None, None),
    };
    let proc = &asker.state.targets.tree.proc;
    let process = |number: i32| {
        let number = u32::try_from(number).map_err(|_| Errno::INVAL)?;
        proc.identity(number).map(|it| it.pid).map_err(|_| Errno::SRCH)
    };
    // What is looked at from here on is what the descriptor stands for, or it has ended.
    let (target, pid) = match thread {
        None => {
            let pid = process(int(0))?;
            (pidfd_open(number(pid)?, PidfdFlags::empty())?, pid)
        }
        Some(tid) => {
            let tid = u32::try_from(tid).map_err(|_| Errno::INVAL)?;
            let target = match pidfd_open(number(tid)?, PIDFD_THREAD) {
                // Before Linux 6.9 there are only descriptors of processes.
                Err(Errno::INVAL) => {
                    allow_one(asker, own, tid, of_signal(signal))?;
                    return Ok(Answer::Continue);
                }
                opened => opened?,
            };
            (target, process(tid.cast_signed())?)
        }
    };
    let names_process = matches!(asker.number, Sysno::tgkill | Sysno::rt_tgsigqueueinfo);
    if names_process && int(0) != pid.cast_signed() {
        return Err(Errno::SRCH);
    }
    allow_one(asker, own, pid, of_signal(signal))?;
    if !asker.state.targets.tree.is_inside(pid) {
        // Nothing keeps the monitor from signalling those; the kernel says whether the caller may.
        return Ok(Answer::Continue);
    }
    asker.same_ids()?;
    let info = match info {
        Some(n) => SignalInfo::of_caller(asker.caller.bytes(asker.caller.call.args[n])?, signal),
        None => SignalInfo::queued(signal, own.pid, user(asker)?),
    };
    thread::signal_with(target.as_fd(), signal, &info)?;
    Ok(Answer::Return(0))
}

fn number(pid: u32) -> Result<Pid> {
    Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)
}

/// The caller's real user.
fn user(asker: Asker<'_>) -> Result<u32> {
    let status = asker.state.targets.tree.proc.status(asker.caller.call.tid)?;
    status.users().and_then(|users| users.first().copied()).ok_or(Errno::SRCH)
}
