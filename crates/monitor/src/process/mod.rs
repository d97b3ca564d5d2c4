//! The process object manager: whose label a process has, and what one process may do to another.

mod apart;
mod connection;
mod exec;
mod lineage;
mod mark;
mod others;
pub(crate) mod proc_files;
mod verify;

use crate::{
    gate::{Asker, Gate, Outcome},
    revoke::ProcessStatus,
};
use rustix::{
    io::{Errno, Result},
    process::{Gid, Pid, PidfdFlags, PidfdGetfdFlags},
    thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities},
};
use std::{collections::BTreeSet, os::fd::OwnedFd};
use syscalls::Sysno;

pub use connection::Connector;
pub(crate) use connection::{PREFIX, sign};
pub(crate) use lineage::{Processes, label_of};

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

/// Answers the calls of this object manager; `None` for those of others.
pub(crate) fn decide(asker: Asker<'_>) -> Option<Outcome> {
    use Sysno::*;
    Some(match asker.number {
        execve | execveat => exec::decide(asker),
        fork | vfork | clone => others::fork(asker),
        kill | tkill | tgkill | rt_sigqueueinfo | rt_tgsigqueueinfo | pidfd_send_signal
        | pidfd_open => others::signal(asker),
        // Of its commands, the one that comes through the gate says who gets signals.
        fcntl => others::own(asker),
        ptrace | process_vm_readv | process_vm_writev | pidfd_getfd | kcmp => {
            others::inspect(asker)
        }
        prlimit64 | sched_setparam | sched_setscheduler | sched_setattr | sched_setaffinity
        | setpriority | ioprio_set => others::tune(asker),
        _ => return None,
    })
}

impl Asker<'_> {
    /// A duplicate of descriptor `fd` of the calling process.
    pub(crate) fn duplicate(&self, fd: i32) -> Result<OwnedFd> {
        let pid = self.caller.identity()?.pid;
        let pid = Pid::from_raw(pid as i32).ok_or(Errno::SRCH)?;
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
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
