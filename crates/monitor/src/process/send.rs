//! Signalling one process or thread by its number, where there are several domains and the run has
//! no numbers of its own.
//!
//! A caller can make its call late (`SCHED_IDLE`). By then the number may be that of a process in
//! another domain. So the monitor signals whom it has asked about, by a descriptor, and says who
//! has signalled.

use mediation::call::{Answer, Asker, CallResult};
use proc::Identity;
use rustix::{
    io::{Errno, Result},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::os::fd::{AsFd as _, OwnedFd};
use supervisor::thread::{self, PIDFD_THREAD, SignalInfo};
use syscalls::Sysno;

/// Whether a signal to `pid` is for [`Recipient`]: no number of the caller's own comes to another
/// process while it makes a call.
pub(super) fn is_by_monitor(asker: Asker<'_>, own: &Identity, pid: u32) -> bool {
    let is_own = pid == own.inner_pid || pid == own.inner_tid;
    let signals = !matches!(asker.number, Sysno::pidfd_open | Sysno::pidfd_send_signal);
    signals && !is_own && own.pid == own.inner_pid && !asker.state.subjects.cannot_differ_yet()
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
