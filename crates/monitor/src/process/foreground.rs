//! Who is in the foreground of the terminal: a run gives on what it has, and takes nothing from
//! others.
//!
//! A process can only give the foreground of its session's terminal. So whose call it is decides,
//! and which group has the terminal now; whatever the descriptor stands for by the time that the
//! kernel looks, it acts on no other.

use super::{ProcessAsker, attach};
use audit::Refusal;
use mediation::{
    call::{Answer, CallResult},
    state::MonitorState,
};
use rustix::{
    fs::FileType,
    io::{Errno, Result},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::os::fd::AsFd as _;
use supervisor::{RESTART, thread};

/// The device `/dev/tty`, which stands for the terminal of whoever opens it.
const OWN_TERMINAL: (u32, u32) = (5, 0);

/// ioctl(2) with `TIOCSPGRP`, the one that comes here. In the background, the kernel stops who asks
/// by `SIGTTOU`, but lets it have the terminal if it does not hear that: the shell outside, from
/// which it is taken, ends.
pub(super) fn set_foreground(asker: ProcessAsker<'_>) -> CallResult {
    let caller = asker.caller.identity()?.pid;
    let proc = &asker.state.targets.tree.proc;
    let own = proc.stat(std::process::id())?;
    if proc.stat(caller)?.session != own.session {
        // In a session of its own, which nobody leaves for another one.
        return Ok(Answer::Continue);
    }
    let file = rustix::fs::fstat(asker.caller.file(asker.caller.int(0))?)?;
    let terminal = own.terminal.ok_or(Errno::NOTTY)?;
    let device = (rustix::fs::major(file.st_rdev), rustix::fs::minor(file.st_rdev));
    if FileType::from_raw_mode(file.st_mode) != FileType::CharacterDevice {
        return Err(Errno::NOTTY);
    }
    if is_of_run(asker, own.foreground)? {
        note(asker);
        return Ok(Answer::Continue);
    }
    if file.st_rdev != terminal && device != OWN_TERMINAL {
        return Err(Errno::NOTTY);
    }
    let status = asker.state.targets.tree.proc.status(asker.caller.call.tid);
    let status = asker.caller.certain(status)?;
    if status.hears(libc::SIGTTOU).ok_or(Errno::SRCH)? {
        return stop(asker, caller, libc::SIGTTOU);
    }
    let refused = asker.refuse(&in_the_background());
    // With PIDs of its own, a shell takes the groups that it does not see for one, and itself for
    // in the foreground. It would have waited.
    if status.has_own_pids() { stop(asker, caller, libc::SIGSTOP) } else { Err(refused) }
}

/// setpgid(2) with another group than that of the number of the process. Without PIDs of its own, a
/// run has numbers for groups outside, and whoever is in the foreground's group reads the terminal.
pub(super) fn join(asker: ProcessAsker<'_>) -> CallResult {
    let own = asker.caller.identity()?;
    let (process, group) = (asker.caller.int(0), asker.caller.int(1));
    let makes_it = group == process || (process == 0 && group == own.pid.cast_signed());
    if own.pid != own.inner_pid || group <= 0 || makes_it {
        return Ok(Answer::Continue);
    }
    let tree = &asker.state.targets.tree;
    let dewar = tree.proc.stat(std::process::id())?;
    // In a session of its own nobody is from outside.
    let is_apart = tree.proc.stat(own.pid)?.session != dewar.session;
    if is_apart || [dewar.group, own.pid.cast_signed()].contains(&group) {
        return Ok(Answer::Continue);
    }
    let all_are_inside = || -> Result<bool> {
        Ok(members(asker.state, group)?.into_iter().all(|pid| tree.is_inside(pid)))
    };
    if !all_are_inside()? {
        return Err(asker.refuse(&outside(group)));
    }
    // As long as the one who made it has that number, no group outside gets it. Who has ended, or
    // is traced, cannot be made to keep it: as in a pipeline whose first program is quick.
    let maker = group.cast_unsigned();
    if !tree.is_inside(maker) {
        return Ok(Answer::Continue);
    }
    match attach::make_kept(*asker, maker, || all_are_inside() == Ok(true), &outside(group)) {
        Err(Errno::PERM) if all_are_inside()? => Ok(Answer::Continue),
        made => made,
    }
}

/// Whether process group `group` is Dewar's, which the run is in, or made of processes of the run
/// only, or was, when the run made it the foreground: job control leaves it there when it has
/// ended.
fn is_of_run(asker: ProcessAsker<'_>, group: i32) -> Result<bool> {
    let state = asker.state;
    if group <= 0 {
        return Ok(false);
    }
    if group == state.targets.tree.proc.stat(std::process::id())?.group {
        return Ok(true);
    }
    let members = members(state, group)?;
    if members.is_empty() {
        return Ok(asker.processes.is_foreground(group));
    }
    Ok(members.into_iter().all(|pid| state.targets.tree.is_inside(pid)))
}

/// The processes of a group that can be seen.
fn members(state: &MonitorState, group: i32) -> Result<Vec<u32>> {
    let proc = &state.targets.tree.proc;
    let is_in_it = |pid: &u32| proc.stat(*pid).is_ok_and(|stat| stat.group == group);
    Ok(proc.pids()?.into_iter().filter(is_in_it).collect())
}

/// Notes which group the caller makes the foreground. It can write another number over that one,
/// which then is taken for another's when the group has ended.
fn note(asker: ProcessAsker<'_>) {
    let state = asker.state;
    let Ok(group) = asker.caller.bytes::<4>(asker.caller.call.args[2]) else { return };
    let group = u32::from_ne_bytes(group);
    let is_in_it = |pid: &u32| {
        let status = state.targets.tree.proc.status(*pid);
        status.is_ok_and(|status| status.inner_group() == Some(group))
    };
    let member = state.targets.tree.inside().unwrap_or_default().into_iter().find(is_in_it);
    if let Some(stat) = member.and_then(|pid| state.targets.tree.proc.stat(pid).ok()) {
        asker.processes.makes_foreground(stat.group);
    }
}

/// Does what the kernel does in the background to a process that hears `SIGTTOU`: stops its group,
/// and makes the call anew when that goes on. Left to the kernel, the caller could stop hearing
/// first.
fn stop(asker: ProcessAsker<'_>, caller: u32, signal: i32) -> CallResult {
    let group = asker.state.targets.tree.proc.stat(caller)?.group;
    let members = members(asker.state, group)?;
    if !members.iter().any(|pid| leads_outside(asker.state, *pid, group)) {
        // A group that nobody would continue is not stopped.
        return Err(Errno::NOTTY);
    }
    for pid in
        members.into_iter().filter(|pid| *pid != caller && asker.state.targets.tree.is_inside(*pid))
    {
        // One that has ended is as good.
        let number = Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)?;
        let process = pidfd_open(number, PidfdFlags::empty());
        let _ = process.and_then(|process| thread::signal(process.as_fd(), signal));
    }
    // The thread is the caller for as long as the call waits.
    asker.caller.certain(Ok(()))?;
    thread::signal_thread(caller, asker.caller.call.tid, signal)?;
    // The signal decides: its handler may say otherwise.
    Err(RESTART)
}

/// Whether the parent of a process is in the same session, and in another group than `group`: it
/// can continue the group.
fn leads_outside(state: &MonitorState, pid: u32, group: i32) -> bool {
    let proc = &state.targets.tree.proc;
    let parent = proc.parent(pid).ok().filter(|parent| *parent != 0);
    let parent = parent.and_then(|parent| proc.stat(parent).ok());
    let own = proc.stat(std::process::id()).ok();
    parent.zip(own).is_some_and(|(it, own)| it.session == own.session && it.group != group)
}

fn in_the_background() -> Refusal {
    Refusal {
        errno: Errno::PERM,
        by: "the process object manager",
        tclass: "process",
        missing: "ioctl",
        object: "the foreground of the terminal (TIOCSPGRP)".to_owned(),
        reason: "the run is in the background, and the terminal is another program's",
        instead: "bring the run to the foreground (`fg`)",
    }
}

fn outside(group: i32) -> Refusal {
    Refusal {
        errno: Errno::PERM,
        by: "the process object manager",
        tclass: "process",
        missing: "setpgid",
        object: format!("process group {group}"),
        reason: "it has members outside of the run, and what is in the foreground's group reads what is typed",
        instead: "make a group of its own: setpgid(0, 0)",
    }
}
