//! Init: the first process of the sandbox. It makes what only a member of the new namespaces can
//! make, creates the command's process, buries orphans, and tells the monitor how the command
//! fares. When it ends, the whole sandbox ends; and it ends with the monitor.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, set_child_subreaper,
    set_parent_process_death_signal, wait,
};
use rustix::thread::{CapabilitySet, UnshareFlags, set_no_new_privs};

use super::command::become_command;
use super::event_wait::EventWait;
use super::init_spec::InitSpec;
use super::mounts::{attach, deny_files, make_read_only, new_mount};
use super::wire::{Doing, Report, Wire};
use super::{capabilities, descendants};
use crate::sys;

type Failure = (Doing, Errno);

/// Settings of the kernel that root can write without any capability, as the files are its own.
const KERNEL_SETTINGS: [&str; 5] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/sys"];

/// Where the sandbox could raise its own limits, or leave them.
const LIMIT_SETTINGS: [&str; 1] = ["/sys/fs/cgroup"];

/// Becomes init. Runs in the process made for it; never returns.
pub(super) fn become_init(order: &InitSpec<'_>, reports: &Wire, hand_over: Wire) -> ! {
    let failed = |(doing, errno): Failure| -> ! {
        let _ = reports.send(Report::Failed(doing, errno));
        sys::exit_now(1)
    };
    let queues = match prepare(order) {
        Ok(queues) => queues,
        Err(failure) => failed(failure),
    };
    let command = match sys::fork(order.proc) {
        Ok(None) => become_command(order, &hand_over, queues.as_ref().map(AsFd::as_fd)),
        Ok(Some(command)) => command,
        Err(errno) => failed((Doing::Fork, errno)),
    };
    drop(hand_over);
    let Err(failure) = stand_by(order, reports, command);
    failed(failure)
}

/// Sets up the new namespaces, and gives up every power that was needed for it; the message queues
/// of the run, where it has its own.
fn prepare(order: &InitSpec<'_>) -> Result<Option<OwnedFd>, Failure> {
    let at = |doing: Doing| move |errno: Errno| (doing, errno);
    let namespaces = order.spec.namespaces;
    // A name is only for those who look at a list of processes.
    let _ = rustix::thread::set_name(c"dewar-init");
    sys::SignalSet::of(&Vec::from_iter(1..=64)).block();
    join_cgroup(order.cgroup).map_err(at(Doing::JoinCgroup))?;
    if namespaces.cgroup {
        sys::unshare(order.proc, UnshareFlags::NEWCGROUP).map_err(at(Doing::CgroupNamespace))?;
    }
    if namespaces.net {
        sys::bring_up_loopback().map_err(at(Doing::Loopback))?;
    }
    if namespaces.pid {
        mount_proc().map_err(at(Doing::MountProc))?;
        deny_in_proc(&order.spec.view.denied).map_err(at(Doing::MountProc))?;
    } else {
        set_child_subreaper(Some(getpid())).map_err(at(Doing::Prepare))?;
    }
    if namespaces.mount {
        fix_settings(namespaces.user, !order.cgroup.is_empty()).map_err(at(Doing::FixSettings))?;
    }
    let has_queues = namespaces.ipc && namespaces.mount;
    let queues = if has_queues { renew_message_queues() } else { None };
    set_no_new_privs(true).map_err(at(Doing::Capabilities))?;
    let keep = CapabilitySet::from_bits_retain(order.spec.capabilities);
    capabilities::reduce(keep).map_err(at(Doing::Capabilities))?;
    if namespaces.pid {
        // After the capabilities, as a change of them can clear it. Without a pid namespace init
        // must outlive the monitor for a moment, to kill what would be left.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(Doing::Prepare))?;
    }
    Ok(queues)
}

fn join_cgroup(entries: &[std::os::fd::OwnedFd]) -> Result<(), Errno> {
    entries.iter().try_for_each(|entry| rustix::io::write(entry, b"0").map(drop))
}

/// Covers `/proc` with one that shows the new pid namespace.
pub(super) fn mount_proc() -> Result<(), Errno> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = new_mount("proc", &[], attributes)?;
    attach(&proc, rustix::fs::CWD, Path::new("/proc"))
}

/// Makes read-only what belongs to the user of the sandbox but not into its hands.
fn fix_settings(user_namespace: bool, limited: bool) -> Result<(), Errno> {
    let settings: &[&str] = match (user_namespace, limited) {
        (false, _) => &KERNEL_SETTINGS,
        (true, true) => &LIMIT_SETTINGS,
        (true, false) => &[],
    };
    let existing = settings.iter().map(Path::new).filter(|path| path.exists());
    existing.into_iter().try_for_each(make_read_only)
}

/// Covers denied files of the new `/proc`: the view was built over the old one.
fn deny_in_proc(denied: &[std::path::PathBuf]) -> Result<(), Errno> {
    let inside = denied.iter().filter(|path| path.starts_with("/proc") && path.is_file());
    deny_files(&inside.map(std::path::PathBuf::as_path).collect::<Vec<_>>())
}

/// Shows the message queues of the new IPC namespace, where any are shown. If that fails those
/// of the outside stay visible by name, but the files are not the namespace's and the envelope
/// rules them. mq_open(2) finds queues by no path, and the envelope would refuse them all: what is
/// returned is the directory that they lie in.
fn renew_message_queues() -> Option<OwnedFd> {
    let queues = new_mount("mqueue", &[], MountAttrFlags::MOUNT_ATTR_NOSUID).ok()?;
    let place = Path::new("/dev/mqueue");
    if place.is_dir() {
        let _ = attach(&queues, rustix::fs::CWD, place);
    }
    Some(queues)
}

/// Waits for children and for the end of the monitor, and ends with either.
fn stand_by(
    order: &InitSpec<'_>,
    reports: &Wire,
    command: Pid,
) -> Result<std::convert::Infallible, Failure> {
    let at = |errno| (Doing::Prepare, errno);
    capabilities::reduce(CapabilitySet::empty()).map_err(|errno| (Doing::Capabilities, errno))?;
    // Where the kernel ends the sandbox, init needs no view of the processes outside.
    let view = (!order.spec.namespaces.pid).then_some(order.proc);
    let events = EventWait::begin(reports, view, false).map_err(at)?;
    let mut stopped = false;
    loop {
        let asked = events.wait();
        // What asks is the monitor, or its end.
        let monitor_gone = asked && reports.wait().is_err();
        if bury(reports, command, &mut stopped) || monitor_gone {
            end(order);
        }
        if asked {
            let _ = reports.send(Report::Current { stopped });
        }
    }
}

/// Collects children that changed, and reports on the command; whether that one has ended.
fn bury(reports: &Wire, command: Pid, stopped: &mut bool) -> bool {
    let changes = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
    let mut ended = false;
    while let Ok(Some((pid, status))) = wait(changes) {
        if pid != command {
            continue;
        }
        let report = report_of(status);
        *stopped = matches!(report, Some(Report::Stopped(_)));
        ended |= report.is_some() && !*stopped;
        if let Some(report) = report {
            // If the monitor is gone, the next poll says so.
            let _ = reports.send(report);
        }
    }
    ended
}

/// What to tell the monitor; `None` when the command was continued.
fn report_of(status: WaitStatus) -> Option<Report> {
    let exited = status.exit_status().map(Report::Exited);
    let killed = || status.terminating_signal().map(Report::Killed);
    let stopped = || status.stopping_signal().map(Report::Stopped);
    exited.or_else(killed).or_else(stopped)
}

/// Ends the sandbox: the kernel kills all members of a pid namespace whose init ends; without
/// one, init does it.
fn end(order: &InitSpec<'_>) -> ! {
    if !order.spec.namespaces.pid {
        descendants::kill_all(order.proc);
    }
    sys::exit_now(0)
}
