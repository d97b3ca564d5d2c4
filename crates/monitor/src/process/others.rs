//! What one process may do to another, and forking.

use super::{
    attach,
    refusals::{Reach, refuse},
    send,
};
use avc::Hint;
use flask::{AccessVector, Class, InitialSid, Sid, perm};
use mediation::{
    cache::AccessRequest,
    call::{Answer, Asker, CallResult},
    subject::{LabelGeneration, has_stayed, is_gone, label_generation, subject_of, watch},
};
use proc::Identity;
use rustix::{
    io::{Errno, Result},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::{
    os::fd::{AsFd as _, OwnedFd},
    sync::atomic::Ordering,
};
use supervisor::thread;
use syscalls::Sysno;

/// `IOPRIO_WHO_PROCESS` of `linux/ioprio.h`.
const IOPRIO_WHO_PROCESS: i32 = 1;
/// `IOPRIO_WHO_PGRP` of the same.
const IOPRIO_WHO_PGRP: i32 = 2;

/// Asks about a process labelled `tsid`.
pub(super) fn ask(
    asker: Asker<'_>,
    tsid: Sid,
    requested: AccessVector,
    object: &dyn Fn() -> String,
) -> Result<()> {
    let hint = Hint::default();
    let request = AccessRequest { tsid, tclass: Class::Process, requested, hint: &hint, object };
    asker.ask(&asker.state.caches.process, &request).map_err(|_| Errno::PERM)
}

pub(super) fn fork(asker: Asker<'_>) -> CallResult {
    let has = |flag| asker.number == Sysno::clone && asker.caller.int(0) & flag != 0;
    if has(libc::CLONE_THREAD) {
        // It comes here for another flag: nobody may make one while a run is being stopped.
        return Ok(Answer::Continue);
    }
    if has(libc::CLONE_FILES) {
        asker.state.shares_descriptors.store(true, Ordering::SeqCst);
    }
    ask(asker, asker.ssid, perm::process::FORK, &|| "itself".to_owned())?;
    // The flags came in a register, and the child has its parent's label: nothing is gained by
    // changing anything.
    Ok(Answer::Continue)
}

/// The processes that a call is about, by their PIDs in the sandbox.
pub(super) enum Targets {
    One(u32),
    Group(u32),
    All,
}

/// Whether `asker` may do `requested` to every target. A process outside of the sandbox has the
/// initial SID `kernel`: with PIDs of its own, the sandbox has no name for it, and the attempt is
/// only recorded. A process that has ended is no object: `ESRCH`, and no record. The difference
/// tells no more than the kernel does: without PIDs of its own, calls such as getpgid(2) say which
/// processes exist.
pub(super) fn allow(asker: Asker<'_>, targets: &Targets, requested: AccessVector) -> Result<()> {
    let own = asker.caller.identity()?;
    match targets {
        Targets::One(pid) => allow_one(asker, own, *pid, requested),
        Targets::Group(_) | Targets::All if asker.state.subjects.cannot_differ_yet() => {
            ask(asker, asker.ssid, requested, &|| "process group".to_owned())
        }
        Targets::Group(group) => members(asker, Some(*group), requested).map(drop),
        Targets::All => members(asker, None, requested).map(drop),
    }
}

fn allow_one(asker: Asker<'_>, own: &Identity, pid: u32, requested: AccessVector) -> Result<()> {
    let object = || format!("process {pid}");
    if pid == own.inner_pid || pid == own.inner_tid {
        return ask(asker, asker.ssid, requested, &object);
    }
    let Ok(outer) = asker.state.targets.tree.outer_pid(pid, own) else {
        if asker.state.targets.tree.is_outsider(pid) {
            let _ = ask(asker, InitialSid::Kernel.into(), requested, &object);
        }
        return Err(Errno::SRCH);
    };
    let tsid = subject_of(asker, outer)?;
    if tsid == InitialSid::Kernel.into() {
        // It may have ended before its label was found.
        asker.state.targets.tree.proc.identity(outer).map_err(|_| Errno::SRCH)?;
    }
    ask(asker, tsid, requested, &object)?;
    if requested == perm::process::PTRACE {
        watch(asker.state, outer)?;
        // Between the answer and now it may have entered another domain.
        return if subject_of(asker, outer)? == tsid { Ok(()) } else { Err(Errno::PERM) };
    }
    Ok(())
}

/// A process of a group, or of the sandbox.
struct Member {
    pid: u32,
    inner: u32,
    fd: OwnedFd,
    /// For how long it has had the label that was asked about.
    generation: Result<LabelGeneration>,
}

/// Each process of a group, or of the sandbox; every one must be one that `asker` may do this to.
fn members(asker: Asker<'_>, group: Option<u32>, requested: AccessVector) -> Result<Vec<Member>> {
    let state = asker.state;
    let mut members = Vec::new();
    for pid in state.targets.tree.proc.pids()? {
        // What is looked at from here on is the process that the descriptor stands for, or one that
        // has ended. One that cannot be looked at for another reason must not be left out: it would
        // not be asked about.
        let number = Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)?;
        let found = pidfd_open(number, PidfdFlags::empty())
            .and_then(|fd| Ok((fd, state.targets.tree.proc.identity(pid)?)));
        let (fd, member) = match found {
            Err(error) if is_gone(error) => continue,
            found => found?,
        };
        if state.targets.tree.is_inside(pid)
            && group.is_none_or(|group| group_of(asker, pid) == Some(group))
        {
            let (inner, generation) = (member.inner_pid, label_generation(state, pid));
            ask(asker, subject_of(asker, pid)?, requested, &|| format!("process {inner}"))?;
            members.push(Member { pid, inner, fd, generation });
        }
    }
    Ok(members)
}

/// Sends a signal to a process group, or to all but the caller: to those whom the monitor has asked
/// about. Another thread could put the caller, or others, into another group meanwhile, and without
/// PIDs of its own the sandbox has no groups of its own.
fn send_to_members(asker: Asker<'_>, group: Option<u32>, signal: i32) -> CallResult {
    let own = asker.caller.identity()?.pid;
    let mut members = members(asker, group, of_signal(signal))?;
    if group.is_none() {
        members.retain(|member| member.pid != own);
    }
    if members.is_empty() {
        return Err(Errno::SRCH);
    }
    let mut answer = Ok(Answer::Return(0));
    for member in &members {
        match signal_member(asker, member, signal) {
            // One that has ended meanwhile has been signalled too late.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => answer = Err(error),
        }
    }
    answer
}

/// Signals one that was asked about. While others were, it may have entered another domain.
fn signal_member(asker: Asker<'_>, member: &Member, signal: i32) -> Result<()> {
    let &Member { pid, inner, ref fd, generation } = member;
    let stays = match generation {
        Ok(generation) => has_stayed(asker.state, pid, generation),
        Err(error) => is_gone(error),
    };
    if !stays {
        let object = || format!("process {inner}");
        let allow = || ask(asker, subject_of(asker, pid)?, of_signal(signal), &object);
        send::decide(asker, pid, allow)?;
    }
    thread::signal(fd.as_fd(), signal)
}

/// The process group of a process, as the sandbox numbers it.
fn group_of(asker: Asker<'_>, pid: u32) -> Option<u32> {
    asker.state.targets.tree.proc.status(pid).ok()?.inner_group()
}

fn of_signal(signal: i32) -> AccessVector {
    match signal {
        0 => perm::process::SIGNULL,
        libc::SIGKILL => perm::process::SIGKILL,
        libc::SIGSTOP => perm::process::SIGSTOP,
        _ => perm::process::SIGNAL,
    }
}

/// Who a `kill`-like first argument means.
fn targets(asker: Asker<'_>, pid: i32) -> Result<Targets> {
    Ok(match pid {
        -1 => Targets::All,
        0 => Targets::Group(group_of(asker, asker.caller.identity()?.pid).ok_or(Errno::SRCH)?),
        pid if pid < 0 => Targets::Group(pid.unsigned_abs()),
        pid => Targets::One(pid.unsigned_abs()),
    })
}

/// Whether the kernel sends what is for a group, or for all, to processes of the caller's domain
/// only. The group that Dewar was started in has no number inside, and members outside; who has
/// left it, for one with a number, does not come back.
pub(super) fn keeps_to_itself(asker: Asker<'_>, targets: &Targets) -> bool {
    let has_own_pids = |own: &Identity| own.pid != own.inner_pid;
    !matches!(targets, Targets::Group(0))
        && asker.state.subjects.cannot_differ_yet()
        && asker.caller.identity().is_ok_and(has_own_pids)
}

pub(super) fn signal(asker: Asker<'_>) -> CallResult {
    let int = |n| asker.caller.int(n);
    let one = |n: usize| u32::try_from(int(n)).map(Targets::One).map_err(|_| Errno::INVAL);
    let (targets, signal) = match asker.number {
        Sysno::kill => (targets(asker, int(0))?, int(1)),
        // Nobody has such a number; what else is wrong with the call is said first.
        Sysno::rt_sigqueueinfo if int(0) <= 0 => return Ok(Answer::Continue),
        Sysno::tkill | Sysno::rt_sigqueueinfo => (one(0)?, int(1)),
        Sysno::tgkill | Sysno::rt_tgsigqueueinfo => (one(0)?, int(2)),
        // Where several domains were known from the start, the kernel says this.
        Sysno::pidfd_send_signal if asker.is_inside() => return Err(Errno::NOSYS),
        // To a group or a session: there is a call for that.
        Sysno::pidfd_send_signal if int(3) != 0 => return Err(Errno::INVAL),
        Sysno::pidfd_send_signal => (Targets::One(send::behind_pidfd(asker, int(0))?), int(1)),
        _ => (one(0)?, 0),
    };
    let group = match targets {
        Targets::One(_) => None,
        Targets::Group(group) => Some(Some(group)),
        Targets::All => Some(None),
    };
    if let Some(group) = group.filter(|_| !keeps_to_itself(asker, &targets)) {
        return send_to_members(asker, group, signal);
    }
    let own = asker.caller.identity()?;
    if let Targets::One(pid) = targets
        && send::is_by_monitor(asker, own, pid)
    {
        let recipient = send::Recipient::of(asker, own)?;
        if recipient.as_ref().is_some_and(|it| !it.is_inside) {
            // Nothing keeps the monitor from signalling those; the kernel says whether the caller
            // may.
            ask(asker, InitialSid::Kernel.into(), of_signal(signal), &|| format!("process {pid}"))?;
            return Ok(Answer::Continue);
        }
        let Some(recipient) = recipient else {
            allow_one(asker, own, pid, of_signal(signal))?;
            return Ok(Answer::Continue);
        };
        let allow = || allow_one(asker, own, recipient.inner, of_signal(signal));
        send::decide(asker, recipient.pid, allow)?;
        return recipient.signal(asker, own, signal);
    }
    if let Targets::One(pid) = targets
        && send::ends_or_stops(asker, own, pid, signal)
    {
        let thread = matches!(asker.number, Sysno::tgkill | Sysno::rt_tgsigqueueinfo);
        let named = (pid, thread.then(|| int(1)));
        let allow = || allow_one(asker, own, pid, of_signal(signal));
        return send::end_or_stop(asker, own, named, signal, allow);
    }
    allow(asker, &targets, of_signal(signal))?;
    // PID and signal came in registers. A PID in a namespace of its own keeps its owner for longer
    // than a call waits, and the kernel lets no signal out of the namespace.
    Ok(Answer::Continue)
}

pub(super) fn tune(asker: Asker<'_>) -> CallResult {
    let int = |n| asker.caller.int(n);
    let many = !asker.state.subjects.cannot_differ_yet();
    let (pid, requested) = match asker.number {
        Sysno::prlimit64 => (int(0), perm::process::SETRLIMIT),
        // `which` says that `who` is a process, or else a group or a user.
        Sysno::setpriority if int(0) == libc::PRIO_PROCESS as i32 => {
            (int(1), perm::process::SETSCHED)
        }
        Sysno::ioprio_set if int(0) == IOPRIO_WHO_PROCESS => (int(1), perm::process::SETSCHED),
        Sysno::setpriority | Sysno::ioprio_set => {
            let own = asker.caller.identity()?;
            if own.pid == own.inner_pid {
                return Err(refuse(asker, Reach::Machine));
            }
            // Of a user, the kernel takes those that have a number in the caller's namespace; of
            // the caller's group, all.
            let group = if asker.number == Sysno::setpriority {
                libc::PRIO_PGRP as i32
            } else {
                IOPRIO_WHO_PGRP
            };
            let is_outside = || group_of(asker, own.pid).is_none_or(|group| group == 0);
            if (int(0), int(1)) == (group, 0) && is_outside() {
                return Err(refuse(asker, Reach::OwnGroup));
            }
            if many {
                return Err(refuse(asker, Reach::Members));
            }
            allow(asker, &Targets::All, perm::process::SETSCHED)?;
            return Ok(Answer::Continue);
        }
        _ => (int(0), perm::process::SETSCHED),
    };
    // The caller, or nobody, which each call says in its own way.
    if pid <= 0 {
        return Ok(Answer::Continue);
    }
    let target = attach::Tracee::to_tune(asker, pid);
    allow(asker, &Targets::One(pid.unsigned_abs()), requested)?;
    attach::tune(asker, target?)
}
