//! An exec under supervision: the process is seized for this one call and checked where the new
//! program has replaced the old one but has not run yet.

use super::{
    loader,
    refusals::{Why, refuse},
    script, secure,
};
use avc::Hint;
use file_manager::Seen;
use flask::{Class, Question, Sid, perm};
use inode_labels::Status;
use landlock::AccessFs;
use mediation::{
    call::{Answer, Asker, CallResult},
    subject,
};
use proc::path_of;
use rustix::{
    fs::{Mode, OFlags},
    io::{Errno, Result},
};
use std::os::fd::{AsFd, OwnedFd};
use supervisor::{
    call_at_exec, can_be_held_up, kill_inside,
    ptrace::{Event, Seized},
};
use syscalls::Sysno;

/// Executes `file`, decided as `seen`, and enters `domain`.
pub(super) fn enter(asker: Asker<'_>, seen: &Seen, file: &OwnedFd, domain: Sid) -> CallResult {
    // An interpreter opens its script by name, after the label has changed: nothing ties it to this
    // file.
    if script::start(&asker.state.targets.tree, file).is_some() {
        return Err(refuse(asker, file, Why::Script));
    }
    // So that it can still be told; what counts is what it has when it is stopped.
    if !subject::brings_nothing(asker.state, asker.caller.call.tid)? {
        return Err(refuse(asker, file, Why::Brings));
    }
    let pid = asker.caller.identity()?.pid;
    let _entering = match subject::Entering::new(asker.state, pid) {
        Err(Errno::AGAIN) => {
            refuse(asker, file, Why::Watched);
            return Err(Errno::AGAIN);
        }
        entering => entering?,
    };
    let question = Question { ssid: asker.ssid, tsid: domain, tclass: Class::Process };
    let hint = Hint::default();
    let believed = asker.state.caches.process.grants(question, perm::process::NOATSECURE, &hint);
    let entered = supervised(asker, file, |pid| {
        if subject::brings_nothing(asker.state, pid) != Ok(true) {
            return Err(Some(Why::Brings));
        }
        let executed = executed(asker, pid).map_err(unknown)?;
        if is_same(&executed, seen) != Ok(true) {
            return Err(Some(Why::Another));
        }
        if !believed {
            let path = path_of(&asker.state.targets.tree, &executed);
            let is_loader = path.is_ok_and(|path| path.file_name().is_some_and(secure::is_loader));
            secure::make(pid, is_loader).map_err(unknown)?;
        }
        loader::allow(Asker { ssid: domain, ..asker }, pid, &executed)?;
        forget_parent(asker, pid)?;
        subject::enter(asker.state, pid, domain).map_err(|_| Some(Why::Watched))
    });
    match entered {
        Err(Errno::PERM) => Err(refuse(asker, file, Why::Traced)),
        entered => entered,
    }
}

/// Takes from a process that enters a domain the signal that it was to have at the death of its
/// parent, who may not signal that domain, as SELinux does: the kernel hands it on with each exec.
fn forget_parent(asker: Asker<'_>, pid: u32) -> std::result::Result<(), Option<Why>> {
    let forget = (Sysno::prctl, [libc::PR_SET_PDEATHSIG as u64, 0, 0, 0, 0, 0]);
    match call_at_exec(&asker.state.targets, pid, forget) {
        Ok(_) => Ok(()),
        // It was killed.
        Err(Errno::SRCH) => Err(None),
        Err(_) => Err(Some(Why::Parent)),
    }
}

/// Executes the file decided as `seen` and keeps the domain, where the envelope alone would let
/// other files be executed.
pub(super) fn stay(asker: Asker<'_>, seen: &Seen, file: &OwnedFd) -> CallResult {
    let stayed = supervised(asker, file, |pid| allow_executed(asker, seen, pid));
    let is_exact = asker.state.policy.load().exactness.first.contains(AccessFs::Execute);
    match stayed {
        // Traced already: a debugger is at work.
        Err(Errno::PERM)
            if is_exact
                && subject::may_execute_unseen(asker.state, asker.caller.identity()?.pid)? =>
        {
            // The envelope refuses to execute exactly what policy refuses the first domain, and
            // there is no other.
            Ok(Answer::Continue)
        }
        Err(Errno::PERM) => Err(refuse(asker, file, Why::Traced)),
        stayed => stayed,
    }
}

/// Executes the file decided as `seen`, and enters the run inside that the caller has asked for,
/// whose label `asker` has. Nothing is taken from who comes from where it may do more: filters and
/// variables of its own, and scripts, give it nothing that it did not have.
pub(super) fn enter_inside(asker: Asker<'_>, seen: &Seen, file: &OwnedFd) -> CallResult {
    let entered = supervised(asker, file, |pid| {
        allow_executed(asker, seen, pid)?;
        let entered = subject::enter_inside(asker.state, pid, asker.ssid);
        let entered = entered.and_then(|()| asker.state.inside.has_entered(pid));
        entered.map_err(|_| Some(Why::Unmarked))
    });
    match entered {
        Err(Errno::PERM) => Err(refuse(asker, file, Why::Traced)),
        entered => entered,
    }
}

/// Whether `asker` may run what a process has executed, where `seen` was decided; else why it is
/// killed, if that is not on record yet.
fn allow_executed(asker: Asker<'_>, seen: &Seen, pid: u32) -> std::result::Result<(), Option<Why>> {
    let executed = executed(asker, pid).map_err(unknown)?;
    if !is_same(&executed, seen).map_err(unknown)? {
        allow_other(asker, &executed)?;
    }
    loader::allow(asker, pid, &executed)
}

/// The same of another program than was decided.
fn allow_other(asker: Asker<'_>, executed: &OwnedFd) -> std::result::Result<(), Option<Why>> {
    // An interpreter; or another file, to which the path has led since. What no path leads to was
    // found through a process, about which nobody has asked.
    if rustix::fs::fstat(executed).map_err(unknown)?.st_nlink == 0 {
        return Err(Some(Why::Another));
    }
    let seen = Seen::of(asker, executed.as_fd()).map_err(unknown)?;
    let wanted = perm::file::EXECUTE | perm::file::EXECUTE_NO_TRANS;
    seen.allow(asker, wanted, executed).map_err(|_| None)
}

fn unknown(_: Errno) -> Option<Why> {
    Some(Why::Another)
}

/// Whether a file is the one that was decided.
fn is_same(file: &OwnedFd, seen: &Seen) -> Result<bool> {
    let status = Status::of(file.as_fd())?;
    Ok(status.file_number() == seen.status.file_number())
}

/// The program that a process runs now.
fn executed(asker: Asker<'_>, pid: u32) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat(&asker.state.targets.tree.proc, format!("{pid}/exe"), flags, Mode::empty())
}

/// Lets the call run under ptrace and calls `check` at the exec stop. A process that fails the
/// check is killed: it must not run a single instruction with a wrong label. Why is recorded,
/// unless the check has done so.
fn supervised(
    asker: Asker<'_>,
    file: &OwnedFd,
    check: impl FnOnce(u32) -> std::result::Result<(), Option<Why>>,
) -> CallResult {
    let tid = asker.caller.call.tid;
    let pid = asker.caller.identity()?.pid;
    let state = asker.state;
    let _turn = state.targets.execs.turn();
    // A process that is traced already is denied, as SELinux does.
    if can_be_held_up(&state.targets.tree, pid) {
        return Err(Errno::PERM);
    }
    let awaited = state.targets.execs.wait(pid, tid);
    let is_over = || awaited.is_ended();
    let seized = Seized::new(pid, tid, is_over)?;
    let id = asker.caller.call.id;
    // A caller that has been killed meanwhile, or another thread with its number, is only let go.
    let goes_on =
        state.targets.listener.is_valid(id) && state.targets.listener.send_continue(id).is_ok();
    match seized.wait(is_over)? {
        Some(Event::Executed) => {
            if goes_on && let Err(why) = check(pid) {
                if let Some(why) = why {
                    refuse(asker, file, why);
                }
                kill_inside(&state.targets.tree, pid);
            }
            seized.detach(pid, 0, is_over);
        }
        // The exec failed, and the program has been told so.
        Some(Event::Stopped { signal }) => seized.detach(tid, signal, is_over),
        Some(Event::Gone) => {}
        None => drop(refuse(asker, file, Why::HeldUp)),
    }
    Ok(Answer::Elsewhere)
}
