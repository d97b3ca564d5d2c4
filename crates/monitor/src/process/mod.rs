//! The process object manager: whose label a process has, and what one process may do to another.

mod apart;
pub(crate) mod lineage;
mod mark;
mod others;

use crate::{
    gate::{Answer, Asker, Gate, Outcome},
    handler::decides,
    manager::Manager,
    sys::thread,
};
use rustix::{
    fs::OFlags,
    io::{Errno, Result},
    process::{Gid, Pid, PidfdFlags, PidfdGetfdFlags},
    thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities},
};
use std::{collections::BTreeSet, os::fd::OwnedFd};
use syscalls::Sysno;

pub(crate) use apart::tell_apart;
pub(crate) use lineage::{Processes, label_of, on_new_label};

/// The process object manager: its access vector cache, and whose label a process has.
pub(crate) struct ProcessManager {
    pub(crate) avc: Manager,
    pub(crate) subjects: Processes,
}

/// A process of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProcessStatus {
    /// In the monitor's PID namespace.
    pub pid: u32,
    /// Its parent, likewise.
    pub parent: u32,
    /// Its name.
    pub comm: String,
    /// Its security context.
    pub context: String,
}

/// Every process of the sandbox, with its label.
pub(crate) fn all(gate: &Gate) -> Result<Vec<ProcessStatus>> {
    let inside = gate.view.proc.pids()?.into_iter().filter(|pid| gate.view.is_inside(*pid));
    let status = |pid: u32| {
        let identity = gate.view.proc.identity(pid).ok()?;
        let sid = label_of(gate, pid).ok()?;
        let context = gate.server.sid_to_context(sid).unwrap_or_default();
        Some(ProcessStatus { pid, parent: identity.parent, comm: identity.comm, context })
    };
    Ok(inside.filter_map(status).collect())
}

decides! { asker:
    fork | vfork | clone => others::fork(asker),
    kill | tkill | tgkill | rt_sigqueueinfo | rt_tgsigqueueinfo | pidfd_send_signal
    | pidfd_open => others::signal(asker),
    // Of its commands, the one that comes through the gate says who gets signals.
    fcntl => others::own(asker),
    ptrace | process_vm_readv | process_vm_writev | pidfd_getfd | kcmp => {
        others::inspect(asker)
    },
    prlimit64 | sched_setparam | sched_setscheduler | sched_setattr | sched_setaffinity
    | setpriority | ioprio_set => others::tune(asker),
    setuid | setgid | setreuid | setregid | setresuid | setresgid => change_ids(asker),
}

/// A change of IDs, where the user namespace has no other than the program's. Of another the kernel
/// would say that it means nothing; outside it means somebody whom the program may not become.
fn change_ids(asker: Asker<'_>) -> Outcome {
    use Sysno::*;
    let of_user = matches!(asker.number, setuid | setreuid | setresuid);
    let own = if of_user { asker.gate.ids.0 } else { asker.gate.ids.1 };
    let count = match asker.number {
        setuid | setgid => 1,
        setreuid | setregid => 2,
        _ => 3,
    };
    let is_other = |id: i32| id != -1 && id.cast_unsigned() != own;
    if (0..count).any(|n| is_other(asker.caller.int(n))) {
        return Err(Errno::PERM);
    }
    // The IDs came in registers.
    Ok(Answer::Continue)
}

/// `PIDFD_THREAD` of `linux/pidfd.h`, which is `O_EXCL`.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(OFlags::EXCL.bits());

impl Asker<'_> {
    /// A duplicate of descriptor `fd` of the calling thread.
    pub(crate) fn duplicate(&self, fd: i32) -> Result<OwnedFd> {
        let &proc::Identity { pid, inner_pid, inner_tid, .. } = self.caller.identity()?;
        let number = |id: u32| Pid::from_raw(id.cast_signed()).ok_or(Errno::SRCH);
        let tid = self.caller.call.tid;
        let pidfd = if inner_pid == inner_tid {
            rustix::process::pidfd_open(number(pid)?, PidfdFlags::empty())?
        } else {
            // A thread may have a table of its own (`CLOSE_RANGE_UNSHARE`).
            match rustix::process::pidfd_open(number(tid)?, PIDFD_THREAD) {
                // Before Linux 6.9 there are only descriptors of processes.
                Err(Errno::INVAL) if thread::same_descriptors(tid, pid) => {
                    rustix::process::pidfd_open(number(pid)?, PidfdFlags::empty())?
                }
                Err(Errno::INVAL) => return Err(Errno::BADF),
                opened => opened?,
            }
        };
        let fd = rustix::process::pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty())?;
        // Else the caller is dead, and the descriptor may be that of whoever got its PID.
        if self.gate.listener.is_valid(self.caller.call.id) { Ok(fd) } else { Err(Errno::SRCH) }
    }

    /// Refuses to act on behalf of a process that has changed its IDs since it was launched: the monitor has only its
    /// own to act with.
    pub(crate) fn same_ids(&self) -> Result<()> {
        if !self.gate.ids_change {
            return Ok(());
        }
        let identity = self.caller.identity()?;
        let own_groups = rustix::process::getgroups()?.into_iter().map(Gid::as_raw);
        let own_groups: BTreeSet<u32> = own_groups.collect();
        let groups =
            self.caller.view.proc.status(self.caller.call.tid)?.groups().ok_or(Errno::SRCH)?;
        let same = (identity.fsuid, identity.fsgid) == self.gate.ids && own_groups == groups;
        if same { Ok(()) } else { Err(Errno::PERM) }
    }

    /// Whether the caller has a capability in effect that a profile has granted.
    pub(crate) fn has_capability(&self, capability: CapabilitySet) -> bool {
        let has = |who: &proc::Identity| who.capabilities & capability.bits() != 0;
        self.gate.capabilities & capability.bits() != 0 && self.caller.identity().is_ok_and(has)
    }

    /// Puts in effect, in this thread, those of the sandbox's capabilities that the caller has in effect.
    pub(crate) fn take_capabilities(&self) -> Result<()> {
        if self.gate.capabilities == 0 {
            return Ok(());
        }
        let sets = capabilities(None)?;
        let wanted = self.caller.identity()?.capabilities & self.gate.capabilities;
        let effective = CapabilitySet::from_bits_retain(wanted) & sets.permitted;
        set_capabilities(None, CapabilitySets { effective, ..sets })
    }
}
