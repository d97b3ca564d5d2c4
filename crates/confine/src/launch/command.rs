//! The command's process, from its creation to the exec.

use std::error::Error;
use std::os::fd::AsRawFd;

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};
use rustix::thread::set_no_new_privs;

use super::init_spec::InitSpec;
use super::wire::{Doing, Report, Wire};
use crate::sys;

/// Becomes the command. Runs in the process that init created for it; never returns.
pub(super) fn become_command(order: &InitSpec<'_>, monitor: &Wire) -> ! {
    let candidates = order.program.present();
    let (doing, errno) = match confine(order, monitor) {
        Ok(()) => (Doing::Execute, order.program.execute(&candidates)),
        Err(failure) => failure,
    };
    // If nobody listens any more, the sandbox is being killed.
    let _ = monitor.send(Report::Failed(doing, errno));
    sys::exit_now(if errno == Errno::NOENT { 127 } else { 126 })
}

/// Everything up to the exec, each step narrowing what this process can do.
fn confine(order: &InitSpec<'_>, monitor: &Wire) -> Result<(), (Doing, Errno)> {
    let spec = order.spec;
    let at = |doing: Doing| move |errno: Errno| (doing, errno);
    // What a record of the first exec calls the one who asks.
    let _ = rustix::thread::set_name(c"dewar");
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(Doing::Prepare))?;
    spec.limits.apply(order.by_cgroup).map_err(at(Doing::Limits))?;
    spec.inherited.pass_descriptors().map_err(at(Doing::Descriptors))?;
    spec.inherited.restore_signals();
    set_no_new_privs(true).map_err(at(Doing::Capabilities))?;
    if let Some(envelope) = &spec.envelope {
        envelope.apply().map_err(|error| (Doing::Envelope, errno_of(&error)))?;
    }
    // The monitor must be able to read the arguments of the exec, which is trapped. Nobody else
    // gains from it: there is no other process in the sandbox yet.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(at(Doing::Prepare))?;
    let listener =
        sys::install_filter(order.filter.program, order.filter.flags).map_err(at(Doing::Filter))?;
    // INVARIANT: from here to the exec only calls that the filter never traps: sendto without
    // an address, read, close. The exec itself is trapped, and by then the monitor answers.
    monitor.send(Report::Ready(listener.as_raw_fd())).map_err(at(Doing::Filter))?;
    let released = monitor.wait();
    // The monitor has taken a duplicate by now.
    drop(listener);
    released.map_err(at(Doing::Execute))
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
