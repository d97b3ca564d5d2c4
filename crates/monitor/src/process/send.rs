//! Signalling one process or thread by its number, where there are several domains.
//!
//! A caller can make its call late (`SCHED_IDLE`). By then the process may have entered another
//! domain, or, where the run has no numbers of its own, the number be another process's. So the
//! monitor signals whom it has asked about, by a descriptor, and says who has signalled. With
//! numbers of its own, a run has only what nobody can handle sent so: it looks as ever.

use mediation::{
    call::{Answer, Asker, CallResult},
    subject::{has_stayed, label_generation},
};
use proc::Identity;
use rustix::{
    io::{Errno, Result},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::os::fd::{AsFd as _, OwnedFd};
use supervisor::{
    PAUSE,
    thread::{self, PIDFD_THREAD, SignalInfo},
};
use syscalls::Sysno;

/// How often is looked whether a process has stayed in its domain, while it enters others.
const LOOKS: u32 = 1000;

/// Whether a signal to `pid` is for [`Recipient`]: no number of the caller's own comes to another
/// process while it makes a call.
pub(super) fn is_by_monitor(asker: Asker<'_>, own: &Identity, pid: u32) -> bool {
    own.pid == own.inner_pid && is_of_another(asker, own, pid)
}

/// Whether a signal to `pid` is for [`end_or_stop`].
pub(super) fn ends_or_stops(asker: Asker<'_>, own: &Identity, pid: u32, signal: i32) -> bool {
    [libc::SIGKILL, libc::SIGSTOP].contains(&signal)
        && own.pid != own.inner_pid
        && is_of_another(asker, own, pid)
}

/// Whether a call that names its target by number signals another process, of which there may be
/// some of other domains.
fn is_of_another(asker: Asker<'_>, own: &Identity, pid: u32) -> bool {
    let is_own = pid == own.inner_pid || pid == own.inner_tid;
    let signals = !matches!(asker.number, Sysno::pidfd_open | Sysno::pidfd_send_signal);
    signals && !is_own && !asker.state.subjects.cannot_differ_yet()
}

/// Sends SIGKILL or SIGSTOP, which concern whole processes, to the process of `thread`, or that is
/// `pid`, as the run numbers them. `allow` asks about it, as long as it enters domains meanwhile.
pub(super) fn end_or_stop(
    asker: Asker<'_>,
    own: &Identity,
    (pid, thread): (u32, Option<i32>),
    signal: i32,
    allow: impl Fn() -> Result<()>,
) -> CallResult {
    let state = asker.state;
    let tree = &state.targets.tree;
    let process = |number| tree.proc.identity(tree.outer_pid(number, own)?).map(|it| it.pid);
    let named = thread.map_or(Ok(pid), u32::try_from).map_err(|_| Errno::INVAL)?;
    let found = process(named)
        .and_then(|found| Ok((found, pidfd_open(number(found)?, PidfdFlags::empty())?)));
    let is_its = |found: u32| thread.is_none() || process(pid) == Ok(found);
    let (found, fd) = match found {
        Ok((found, fd)) if is_its(found) && tree.is_inside(found) => (found, fd),
        // What is said of those outside, it says.
        _ => return allow().and(Err(Errno::SRCH)),
    };
    let mut is_decided = false;
    for _ in 0..LOOKS {
        let before = label_generation(state, found);
        allow()?;
        // Who has no label any more has ended.
        is_decided = before.is_err() || before.is_ok_and(|it| has_stayed(state, found, it));
        if is_decided {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    if !is_decided {
        return Err(Errno::PERM);
    }
    if asker.same_ids().is_err() {
        // The kernel says whether it may.
        return Ok(Answer::Continue);
    }
    thread::signal(fd.as_fd(), signal)?;
    Ok(Answer::Return(0))
}

/// Whom kill(2), tkill(2), tgkill(2), rt_sigqueueinfo(2) or rt_tgsigqueueinfo(2) is for.
pub(super) struct Recipient {
    /// Of its process or thread.
    fd: OwnedFd,
    /// Its process, in the sandbox's numbers too: it has none of its own.
    pub(super) pid: u32,
    /// Which argument is the address of a siginfo.
    info: Option<usize>,
}

impl Recipient {
    /// `None` where only the number says who it is: a thread before Linux 6.9, where there are only
    /// descriptors of processes.
    pub(super) fn of(asker: Asker<'_>) -> Result<Option<Self>> {
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
        let (fd, pid) = match thread {
            None => {
                let pid = process(int(0))?;
                (pidfd_open(number(pid)?, PidfdFlags::empty())?, pid)
            }
            Some(tid) => {
                let thread = u32::try_from(tid).map_err(|_| Errno::INVAL)?;
                match pidfd_open(number(thread)?, PIDFD_THREAD) {
                    Err(Errno::INVAL) => return Ok(None),
                    fd => (fd?, process(tid)?),
                }
            }
        };
        let names_process = matches!(asker.number, Sysno::tgkill | Sysno::rt_tgsigqueueinfo);
        if names_process && int(0) != pid.cast_signed() {
            return Err(Errno::SRCH);
        }
        Ok(Some(Self { fd, pid, info }))
    }

    /// Signals it for `asker`, who may.
    pub(super) fn signal(&self, asker: Asker<'_>, own: &Identity, signal: i32) -> CallResult {
        if !asker.state.targets.tree.is_inside(self.pid) {
            // Nothing keeps the monitor from signalling those; the kernel says whether the caller
            // may.
            return Ok(Answer::Continue);
        }
        asker.same_ids()?;
        let info = match self.info {
            Some(n) => {
                SignalInfo::of_caller(asker.caller.bytes(asker.caller.call.args[n])?, signal)
            }
            None => SignalInfo::queued(signal, own.pid, user(asker)?),
        };
        thread::signal_with(self.fd.as_fd(), signal, &info)?;
        Ok(Answer::Return(0))
    }
}

fn number(pid: u32) -> Result<Pid> {
    Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)
}

/// The caller's real user.
fn user(asker: Asker<'_>) -> Result<u32> {
    let status = asker.state.targets.tree.proc.status(asker.caller.call.tid);
    asker
        .caller
        .certain(status)?
        .users()
        .and_then(|users| users.first().copied())
        .ok_or(Errno::SRCH)
}
