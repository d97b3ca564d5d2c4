//! Signalling one process or thread, where there are several domains, or PIDs are the machine's.
//!
//! A caller can make its call late (`SCHED_IDLE`). By then the process may have entered another
//! domain, or, where the run has no numbers of its own, the number be another process's; and
//! another thread may have put another descriptor in the place of a PID descriptor. So the monitor
//! signals whom it has asked about, by a descriptor, and says who has signalled. With numbers of
//! its own, a run has only what nobody can handle sent so: it looks as ever.

use mediation::{
    call::{Answer, Asker, CallResult},
    subject::{has_stayed, label_generation},
};
use proc::{Identity, path_of};
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
    let has_own_pids = own.pid != own.inner_pid;
    match asker.number {
        // Through this nobody is signalled.
        Sysno::pidfd_open => false,
        // What it leads to may be another by then, whoever that was.
        Sysno::pidfd_send_signal => !has_own_pids || !asker.state.subjects.cannot_differ_yet(),
        _ => !has_own_pids && !is_of(own, pid),
    }
}

/// Whether a signal to `pid` is for [`end_or_stop`].
pub(super) fn ends_or_stops(asker: Asker<'_>, own: &Identity, pid: u32, signal: i32) -> bool {
    [libc::SIGKILL, libc::SIGSTOP].contains(&signal)
        && own.pid != own.inner_pid
        && !matches!(asker.number, Sysno::pidfd_open | Sysno::pidfd_send_signal)
        && !is_of(own, pid)
        && !asker.state.subjects.cannot_differ_yet()
}

/// Whether a number is the caller's own.
pub(super) fn is_of(own: &Identity, number: u32) -> bool {
    number == own.inner_pid || number == own.inner_tid
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
    decide(asker, found, allow)?;
    if asker.same_ids().is_err() {
        // The kernel says whether it may.
        return Ok(Answer::Continue);
    }
    thread::signal(fd.as_fd(), signal)?;
    Ok(Answer::Return(0))
}

/// The process behind a PID descriptor of the caller, by its PID in the sandbox.
pub(super) fn behind_pidfd(asker: Asker<'_>, fd: i32) -> Result<u32> {
    let info = asker.state.targets.tree.proc.descriptor(asker.caller.call.tid, fd);
    match asker.caller.certain(info.map_err(|_| Errno::BADF))?.process() {
        Some(pid) => pid.ok_or(Errno::SRCH),
        None => behind_directory(asker, fd),
    }
}

/// The process behind a descriptor of its directory in `/proc`, which counts as one of it.
fn behind_directory(asker: Asker<'_>, fd: i32) -> Result<u32> {
    let directory = asker.caller.file(fd)?;
    if !asker.state.targets.tree.is_proc(directory.as_fd())? {
        return Err(Errno::BADF);
    }
    let path = path_of(&asker.state.targets.tree, &directory)?;
    let name = path.strip_prefix("/proc").map_err(|_| Errno::BADF)?;
    name.to_str().and_then(|name| name.parse().ok()).ok_or(Errno::BADF)
}

/// Has `allow` ask about process `pid` as long as that enters domains meanwhile.
pub(super) fn decide(asker: Asker<'_>, pid: u32, allow: impl Fn() -> Result<()>) -> Result<()> {
    for _ in 0..LOOKS {
        let before = label_generation(asker.state, pid);
        allow()?;
        // Who has no label any more has ended.
        if before.is_err() || before.is_ok_and(|it| has_stayed(asker.state, pid, it)) {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err(Errno::PERM)
}

/// Whom kill(2), tkill(2), tgkill(2), rt_sigqueueinfo(2), rt_tgsigqueueinfo(2) or
/// pidfd_send_signal(2) is for.
pub(super) struct Recipient {
    /// Of its process or thread.
    fd: OwnedFd,
    /// Its process.
    pub(super) pid: u32,
    /// The same, by its PID in the sandbox.
    pub(super) inner: u32,
    /// Whether that belongs to the sandbox. Asked before the kernel is left to it: who has ended
    /// is not inside any more.
    pub(super) is_inside: bool,
    /// Which argument is the address of a siginfo.
    info: Option<usize>,
}

impl Recipient {
    /// `None` where only the number says who it is: a thread before Linux 6.9, where there are only
    /// descriptors of processes.
    pub(super) fn of(asker: Asker<'_>, own: &Identity) -> Result<Option<Self>> {
        if asker.number == Sysno::pidfd_send_signal {
            return Self::behind(asker, own).map(Some);
        }
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
        Self::new(asker, fd, pid, info).map(Some)
    }

    /// Whom a PID descriptor of the caller stands for, by a descriptor of the monitor's own.
    fn behind(asker: Asker<'_>, own: &Identity) -> Result<Self> {
        let of_caller = || behind_pidfd(asker, asker.caller.int(0));
        let inner = of_caller()?;
        let outer = asker.state.targets.tree.outer_pid(inner, own)?;
        let fd = match pidfd_open(number(outer)?, PidfdFlags::empty()) {
            Err(Errno::INVAL | Errno::NOENT) => pidfd_open(number(outer)?, PIDFD_THREAD)?,
            fd => fd?,
        };
        // Else that one has ended, and another has got the number.
        if of_caller()? != inner {
            return Err(Errno::SRCH);
        }
        let pid = asker.state.targets.tree.proc.identity(outer).map_err(|_| Errno::SRCH)?.pid;
        Self::new(asker, fd, pid, (asker.caller.call.args[2] != 0).then_some(2))
    }

    fn new(asker: Asker<'_>, fd: OwnedFd, pid: u32, info: Option<usize>) -> Result<Self> {
        let tree = &asker.state.targets.tree;
        let is_inside = tree.is_inside(pid);
        let inner = tree.proc.identity(pid).map_err(|_| Errno::SRCH)?.inner_pid;
        Ok(Self { fd, pid, inner, is_inside, info })
    }

    /// Signals it for `asker`, who may.
    pub(super) fn signal(&self, asker: Asker<'_>, own: &Identity, signal: i32) -> CallResult {
        asker.same_ids()?;
        let info = match self.info {
            Some(n) => {
                let told: [u8; 128] = asker.caller.bytes(asker.caller.call.args[n])?;
                let by_pidfd = asker.number == Sysno::pidfd_send_signal;
                if by_pidfd && told[..4] != signal.to_ne_bytes() {
                    return Err(Errno::INVAL);
                }
                SignalInfo::of_caller(told, signal)
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
