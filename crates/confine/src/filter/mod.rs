//! The seccomp filter, compiled from the policy: which system call runs, which fails in the kernel,
//! which waits for the monitor.
//!
//! - what no domain may ever do goes to the monitor, which refuses it whatever policy says, for the
//!   record; little of it fails in the kernel (`refusals` names every case of both);
//! - what grants nothing, or what the envelope refuses exactly where policy does, runs;
//! - the rest notifies.
//!
//! Calls that stand in no list fail with `ENOSYS`: a new kernel brings no new hole.

mod arguments;
mod calls;
mod decided;
mod options;
#[cfg(test)]
mod reasons;
mod refusals;
mod requests;
#[cfg(test)]
mod tests;

use crate::bpf::{Action, Rule, TooLong, assemble};
use arguments::special;
pub use arguments::{F_SETOWN_EX, NEW_NAMESPACES};
use calls::{IPC, RUNS};
use decided::LOOKS;
pub use decided::{DECIDED, Handler, REQUESTS, handler};
use libc::sock_filter;
pub use refusals::{Only, Refused, refusals};
pub use requests::SET_OWNER;
use syscalls::Sysno;

/// How much is put before the object managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Every open and exec is decided, counted and, when denied, explained.
    #[default]
    All,
    /// Opens for reading that all reachable domains may do are left to the envelope.
    Fast,
}

/// What the filter must know of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Traps {
    pub(crate) mode: Mode,
    /// The envelope refuses reading exactly where policy does.
    pub(crate) reads_exact: bool,
    /// Some directory can be listed only by the monitor.
    pub(crate) lists: bool,
    /// Some object is hidden from some domain: calls that only look must be decided, too.
    pub(crate) looks: bool,
    /// Every domain may make processes.
    pub(crate) forks: bool,
    /// More than one domain can exist: processes bear marks.
    pub(crate) lineage: bool,
    /// Some domain may own sockets that can send to any address without connecting.
    pub(crate) datagrams: bool,
    /// Some domain may own sockets that listening alone gives a port.
    pub(crate) listens: bool,
    /// Ports of the machine's loopback can be the run's own: no two TCP sockets may share one.
    pub(crate) own_ports: bool,
    /// Sockets that are to be connected or to listen are made by the monitor.
    pub(crate) keeps_sockets: bool,
    /// The user namespace has no IDs but the program's own.
    pub(crate) one_id: bool,
    /// System V and POSIX message queues, semaphores and shared memory are the sandbox's own.
    pub(crate) private_ipc: bool,
}

impl Traps {
    /// Whether opens for reading are left to the envelope.
    pub(crate) fn reads_pass(&self) -> bool {
        self.mode == Mode::Fast && self.reads_exact && !self.looks
    }
}

/// A filter that refuses what names objects of an IPC namespace, and nothing else that is known.
pub(crate) fn without_ipc() -> Result<Vec<sock_filter>, TooLong> {
    let mut rules = vec![Rule::from(Action::Allow); Sysno::last().id() as usize + 1];
    for call in IPC {
        rules[call.id() as usize] = Action::Errno(libc::ENOSYS as u16).into();
    }
    assemble(&rules)
}

/// The filter for a policy.
pub(crate) fn compile(traps: Traps) -> Result<Vec<sock_filter>, TooLong> {
    let last = Sysno::last().id() as usize;
    let mut rules = vec![Rule::from(Action::Errno(libc::ENOSYS as u16)); last + 1];
    let mut set = |calls: &[Sysno], rule: &Rule| {
        for call in calls {
            rules[call.id() as usize] = rule.clone();
        }
    };
    let looks = if traps.looks { Action::Notify } else { Action::Allow };
    for group in RUNS {
        set(group.calls, &Action::Allow.into());
    }
    for (_, calls) in DECIDED {
        set(calls, &Action::Notify.into());
    }
    set(LOOKS, &looks.into());
    // The monitor remembers working directories, unless reads are none of its business.
    let (chdir, fchdir) =
        if traps.reads_pass() { (looks, Action::Allow) } else { (Action::Notify, Action::Notify) };
    set(&[Sysno::chdir], &chdir.into());
    set(&[Sysno::fchdir], &fchdir.into());
    if traps.private_ipc {
        set(IPC, &Action::Allow.into());
    }
    for (call, rule) in special(traps) {
        set(&[call], &rule);
    }
    assemble(&rules)
}
