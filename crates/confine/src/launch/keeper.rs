//! The keeper: where there is no PID namespace, it stands between the monitor and init, and ends
//! what is left of the sandbox when either is gone.
//!
//! Who kills Dewar's process group kills the monitor and init at once, and what had left the group
//! would outlive them. The keeper has a session of its own, and is the subreaper above init, so
//! that it gets whatever init leaves. Init stays in its caller's group and session: the kernel then
//! stops jobs, and hangs them up, as if no keeper were there.

use std::convert::Infallible;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, setsid, wait};
use rustix::thread::CapabilitySet;

use super::init::become_init;
use super::init_spec::InitSpec;
use super::vigil::Vigil;
use super::wire::{Doing, Report, Wire};
use super::{capabilities, descendants};
use crate::sys;

type Failure = (Doing, Errno);

/// The keeper, as the monitor knows it.
pub(super) struct Keeper {
    pub(super) pid: Pid,
    /// The monitor's end of a pair: when it is gone, the keeper ends everything.
    pub(super) leash: Wire,
}

/// The keeper and init.
pub(super) struct Kept {
    pub(super) keeper: Keeper,
    /// The keeper, which ends after init and whatever descends from it.
    pub(super) pidfd: OwnedFd,
    pub(super) init_pid: Pid,
    /// The monitor's ends of what init and the command tell it by.
    pub(super) wires: [Wire; 2],
}

/// Creates the keeper, and by it init in the namespaces that are asked for. `ours` and `theirs` are
/// the ends of what init and the command tell the monitor by.
pub(super) fn keep(
    order: &InitSpec<'_>,
    ours: [Wire; 2],
    theirs: [Wire; 2],
) -> Result<Kept, Failure> {
    let at = |errno| (Doing::Keep, errno);
    let (leash, their_leash) = Wire::pair().map_err(at)?;
    let (pid, pidfd) = match sys::clone_process(order.proc, 0).map_err(at)? {
        sys::Side::Child => {
            drop((leash, ours));
            become_keeper(order, their_leash, theirs)
        }
        sys::Side::Parent { pid, pidfd } => (pid, pidfd),
    };
    drop((their_leash, theirs));
    // Only then has it left the group that could be killed with it in one.
    let failure = match leash.receive().map_err(at)?.map(|received| received.report) {
        Some(Report::Kept(init_pid)) => {
            return Ok(Kept { keeper: Keeper { pid, leash }, pidfd, init_pid, wires: ours });
        }
        Some(Report::Failed(doing, errno)) => (doing, errno),
        _ => at(Errno::SRCH),
    };
    drop((leash, ours));
    descendants::await_end(pidfd.as_fd());
    Err(failure)
}

/// Becomes the keeper. Runs in the process made for it; never returns.
fn become_keeper(order: &InitSpec<'_>, leash: Wire, [reports, hand_over]: [Wire; 2]) -> ! {
    // A name is only for those who look at a list of processes.
    let _ = rustix::thread::set_name(c"dewar-keeper");
    sys::SignalSet::of(&Vec::from_iter(1..=64)).block();
    let flags = order.spec.namespaces.clone_flags();
    let born =
        set_child_subreaper(Some(getpid())).map_err(|errno| (Doing::Keep, errno)).and_then(|()| {
            sys::clone_process(order.proc, flags).map_err(|errno| (Doing::Namespaces, errno))
        });
    let (doing, errno) = match born {
        Ok(sys::Side::Child) => {
            drop(leash);
            become_init(order, &reports, hand_over)
        }
        Ok(sys::Side::Parent { pid, .. }) => {
            let Err(failure) = stand_by(order, &leash, pid);
            failure
        }
        Err(failure) => failure,
    };
    descendants::kill_all(order.proc);
    let _ = leash.send(Report::Failed(doing, errno));
    sys::exit_now(1)
}

/// Waits for the end of the monitor or of init, and ends everything with either.
fn stand_by(order: &InitSpec<'_>, leash: &Wire, init: Pid) -> Result<Infallible, Failure> {
    let at = |errno| (Doing::Keep, errno);
    setsid().map_err(at)?;
    // What changed its user is killed, too.
    capabilities::reduce(CapabilitySet::KILL).map_err(|errno| (Doing::Capabilities, errno))?;
    let vigil = Vigil::begin(leash, Some(order.proc)).map_err(at)?;
    leash.send(Report::Kept(init)).map_err(at)?;
    loop {
        // The monitor says nothing by it; it only lets go.
        let monitor_gone = vigil.wait();
        if monitor_gone || has_ended(init) {
            descendants::kill_all(order.proc);
            sys::exit_now(0)
        }
    }
}

/// Collects the children that have ended; whether init is among them.
fn has_ended(init: Pid) -> bool {
    let mut ended = false;
    while let Ok(Some((pid, _))) = wait(WaitOptions::NOHANG) {
        ended |= pid == init;
    }
    ended
}
