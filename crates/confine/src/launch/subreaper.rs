//! The subreaper: where there is no PID namespace, it stands between the monitor and init, and ends
//! what is left of the sandbox when either is gone.
//!
//! Who kills Dewar's process group kills the monitor and init at once, and what had left the group
//! would outlive them. The subreaper has a session of its own, and stands above init, so
//! that it gets whatever init leaves. Init stays in its caller's group and session: the kernel then
//! stops jobs, and hangs them up, as if no subreaper were there.

use std::convert::Infallible;
use std::os::fd::{AsFd, OwnedFd};

use proc::{Orphans, Proc};
use rustix::io::Errno;
use rustix::process::{
    Pid, WaitOptions, getpid, set_child_subreaper, set_parent_process_death_signal, setsid, wait,
};
use rustix::thread::CapabilitySet;

use super::event_wait::{EventWait, MONITOR_ENDED};
use super::init::become_init;
use super::init_spec::InitSpec;
use super::wire::{Doing, Report, Wire};
use super::{capabilities, descendants};
use crate::sys;

type Failure = (Doing, Errno);

/// The subreaper, as the monitor knows it.
pub(super) struct Subreaper {
    pub(super) pid: Pid,
    /// The monitor's end of a pair: when it is gone, the subreaper ends everything.
    pub(super) lifetime_pipe: Wire,
    /// What it leaves to the monitor, if it is killed.
    pub(super) orphans: Orphans,
}

/// The subreaper and init.
pub(super) struct Kept {
    pub(super) subreaper: Subreaper,
    /// The subreaper, which ends after init and whatever descends from it.
    pub(super) pidfd: OwnedFd,
    pub(super) init_pid: Pid,
    /// The monitor's ends of what init and the command tell it by.
    pub(super) wires: [Wire; 2],
}

/// Creates the subreaper, and by it init in the namespaces that are asked for. `ours` and `theirs`
/// are the ends of what init and the command tell the monitor by.
pub(super) fn keep(
    order: &InitSpec<'_>,
    ours: [Wire; 2],
    theirs: [Wire; 2],
) -> Result<Kept, Failure> {
    let at = |errno| (Doing::Keep, errno);
    let orphans = Orphans::before_birth(&Proc::new(order.proc)).map_err(at)?;
    let (lifetime_pipe, their_lifetime_pipe) = Wire::pair().map_err(at)?;
    let (pid, pidfd) = match sys::clone_process(order.proc, 0).map_err(at)? {
        sys::Side::Child => {
            drop((lifetime_pipe, ours));
            become_subreaper(order, their_lifetime_pipe, theirs)
        }
        sys::Side::Parent { pid, pidfd } => (pid, pidfd),
    };
    drop((their_lifetime_pipe, theirs));
    // Only then has it left the group that could be killed with it in one.
    let failure = match lifetime_pipe.receive().map_err(at)?.map(|received| received.report) {
        Some(Report::Kept(init_pid)) => {
            return Ok(Kept {
                subreaper: Subreaper { pid, lifetime_pipe, orphans },
                pidfd,
                init_pid,
                wires: ours,
            });
        }
        Some(Report::Failed(doing, errno)) => (doing, errno),
        _ => at(Errno::SRCH),
    };
    drop((lifetime_pipe, ours));
    descendants::await_end(pidfd.as_fd());
    Err(failure)
}

/// Becomes the subreaper. Runs in the process made for it; never returns.
fn become_subreaper(
    order: &InitSpec<'_>,
    lifetime_pipe: Wire,
    [reports, hand_over]: [Wire; 2],
) -> ! {
    // A name is only for those who look at a list of processes.
    let _ = rustix::thread::set_name(c"dewar-subreaper");
    sys::SignalSet::of(&Vec::from_iter(1..=64)).block();
    let hears = set_parent_process_death_signal(Some(MONITOR_ENDED));
    let flags = order.spec.namespaces.clone_flags();
    let stands = hears.and_then(|()| set_child_subreaper(Some(getpid())));
    let born = stands.map_err(|errno| (Doing::Keep, errno)).and_then(|()| {
        sys::clone_process(order.proc, flags).map_err(|errno| (Doing::Namespaces, errno))
    });
    let (doing, errno) = match born {
        Ok(sys::Side::Child) => {
            drop(lifetime_pipe);
            become_init(order, &reports, hand_over)
        }
        Ok(sys::Side::Parent { pid, .. }) => {
            let Err(failure) = stand_by(order, &lifetime_pipe, pid);
            failure
        }
        Err(failure) => failure,
    };
    descendants::kill_all(order.proc);
    let _ = lifetime_pipe.send(Report::Failed(doing, errno));
    sys::exit_now(1)
}

/// Waits for the end of the monitor or of init, and ends everything with either.
fn stand_by(order: &InitSpec<'_>, lifetime_pipe: &Wire, init: Pid) -> Result<Infallible, Failure> {
    let at = |errno| (Doing::Keep, errno);
    setsid().map_err(at)?;
    // What changed its user is killed, too.
    capabilities::reduce(CapabilitySet::KILL).map_err(|errno| (Doing::Capabilities, errno))?;
    let events = EventWait::begin(lifetime_pipe, Some(order.proc), true).map_err(at)?;
    lifetime_pipe.send(Report::Kept(init)).map_err(at)?;
    loop {
        // The monitor says nothing by it; it only lets go.
        let monitor_gone = events.wait();
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
