//! The command's process, from its creation to the exec.

use std::error::Error;
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, PidfdGetfdFlags, Signal, WaitOptions, getpid, pidfd_getfd,
    pidfd_open, set_dumpable_behavior, set_parent_process_death_signal, setpgid, waitpid,
};
use rustix::thread::set_no_new_privs;

use super::init_spec::InitSpec;
use super::limits::give_back_files;
use super::wire::{Doing, Report, Wire};
use crate::sys;

/// Becomes the command. Runs in the process that init created for it; never returns.
pub(super) fn become_command(
    order: &InitSpec<'_>,
    monitor: &Wire,
    queues: Option<BorrowedFd<'_>>,
) -> ! {
    let candidates = order.program.present();
    let (doing, errno) = match confine(order, monitor, queues) {
        Ok(()) => (Doing::Execute, order.program.execute(&candidates)),
        Err(failure) => failure,
    };
    // If nobody listens any more, the sandbox is being killed.
    let _ = monitor.send(Report::Failed(doing, errno));
    sys::exit_now(if errno == Errno::NOENT { 127 } else { 126 })
}

/// Everything up to the exec, each step narrowing what this process can do.
fn confine(
    order: &InitSpec<'_>,
    monitor: &Wire,
    queues: Option<BorrowedFd<'_>>,
) -> Result<(), (Doing, Errno)> {
    let spec = order.spec;
    let at = |doing: Doing| move |errno: Errno| (doing, errno);
    // What a record of the first exec calls the one who asks.
    let _ = rustix::thread::set_name(c"dewar");
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(Doing::Prepare))?;
    if order.leads {
        setpgid(None, None).map_err(at(Doing::Prepare))?;
    }
    spec.limits.apply(order.by_cgroup).map_err(at(Doing::Limits))?;
    spec.inherited.pass_descriptors().map_err(at(Doing::Descriptors))?;
    spec.inherited.restore_signals();
    set_no_new_privs(true).map_err(at(Doing::Capabilities))?;
    if let Some(envelope) = &spec.envelope {
        envelope.apply(queues).map_err(|error| (Doing::Envelope, errno_of(&error)))?;
    }
    // Landlock's library says of a descriptor too few that there is no Landlock.
    give_back_files(order.files)
        .and_then(|()| spec.limits.apply_to_files())
        .map_err(at(Doing::Limits))?;
    // The monitor must be able to read the arguments of the exec, which is trapped. Nobody else
    // gains from it: there is no other process in the sandbox yet.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(at(Doing::Prepare))?;
    let helper = Helper::where_needed(order, monitor).map_err(at(Doing::Filter))?;
    let listener =
        sys::install_filter(order.filter.program, order.filter.flags).map_err(at(Doing::Filter))?;
    // INVARIANT: from here to the exec only calls that the filter never traps: sendto without
    // an address, read, close, wait. The exec itself is trapped, and by then the monitor answers.
    let ready = Report::Ready(listener.as_raw_fd());
    monitor.send(ready).map_err(at(Doing::Filter))?;
    helper.map_or(Ok(()), |helper| helper.hand_over(ready)).map_err(at(Doing::Filter))?;
    let released = monitor.wait();
    // The monitor has taken a duplicate by now.
    drop(listener);
    released.map_err(at(Doing::Execute))
}

/// A process with the descriptors of this one, and without its filter: it hands the listener to a
/// monitor that cannot take it, as containers refuse pidfd_getfd(2). This one could not, as the
/// filter may trap sendmsg(2).
struct Helper {
    pid: Pid,
    wire: Wire,
    /// Its end, which it has from the table of descriptors that both use.
    _theirs: Wire,
}

impl Helper {
    /// Starts one if this machine refuses to take descriptors.
    fn where_needed(order: &InitSpec<'_>, monitor: &Wire) -> Result<Option<Self>, Errno> {
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        let taken = pidfd_getfd(&own, monitor.as_fd().as_raw_fd(), PidfdGetfdFlags::empty());
        if !matches!(taken, Err(Errno::PERM | Errno::NOSYS)) {
            return Ok(None);
        }
        let (theirs, wire) = Wire::pair()?;
        match sys::clone_process(order.proc, u64::from(libc::CLONE_FILES.cast_unsigned()))? {
            sys::Side::Child => {
                let handed = help(&theirs, monitor);
                sys::exit_now(handed.map_or(1, |()| 0))
            }
            sys::Side::Parent { pid, .. } => Ok(Some(Self { pid, wire, _theirs: theirs })),
        }
    }

    /// Has the listener handed over.
    fn hand_over(self, ready: Report) -> Result<(), Errno> {
        self.wire.send(ready)?;
        match waitpid(Some(self.pid), WaitOptions::empty()) {
            Ok(Some((_, status))) if status.exit_status() == Some(0) => Ok(()),
            // The caller of Dewar ignores the end of children, and so nobody says how it ended.
            Err(Errno::CHILD) => Ok(()),
            _ => Err(Errno::PIPE),
        }
    }
}

fn help(command: &Wire, monitor: &Wire) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let received = command.receive()?.ok_or(Errno::PIPE)?;
    let Report::Ready(listener) = received.report else { return Err(Errno::PROTO) };
    let listener = sys::duplicate(listener)?;
    monitor.send_with(received.report, listener.as_fd())
}

/// The number behind an error of a library.
fn errno_of(error: &(dyn Error + 'static)) -> Errno {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(errno) = error.downcast_ref().and_then(Errno::from_io_error) {
            return errno;
        }
        next = error.source();
    }
    // The library refused by itself: the kernel does not know what is asked.
    Errno::OPNOTSUPP
}
