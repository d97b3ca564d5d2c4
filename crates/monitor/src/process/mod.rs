//! The process object manager: whose label a process has, and what one process may do to another.

mod asker;
mod attach;
mod foreground;
mod inspect;
mod manager;
mod others;
mod owners;
mod refusals;
mod send;

pub(crate) use asker::ProcessAsker;
pub(crate) use manager::ProcessManager;

use confine::SET_OWNER;
use mediation::{
    call::{Answer, Asker, CallResult},
    decides,
    state::MonitorState,
    subject::label_of,
};
use rustix::io::{Errno, Result};
use syscalls::Sysno;

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
pub(crate) fn all(state: &MonitorState) -> Result<Vec<ProcessStatus>> {
    let inside = state
        .targets
        .tree
        .proc
        .pids()?
        .into_iter()
        .filter(|pid| state.targets.tree.is_inside(*pid));
    let status = |pid: u32| {
        let identity = state.targets.tree.proc.identity(pid).ok()?;
        let sid = label_of(state, pid).ok()?;
        let context = state.server.sid_to_context(sid).unwrap_or_default();
        Some(ProcessStatus { pid, parent: identity.parent, comm: identity.comm, context })
    };
    Ok(inside.filter_map(status).collect())
}

decides! { pub(crate) asker: ProcessAsker<'_>,
    fork | vfork | clone => others::fork(*asker),
    kill | tkill | tgkill | rt_sigqueueinfo | rt_tgsigqueueinfo | pidfd_send_signal
    | pidfd_open => others::signal(*asker),
    // Of its commands, those that come through the gate say who gets signals.
    fcntl => owners::by_fcntl(*asker),
    setpgid => foreground::join(asker),
    ioctl => request(asker),
    ptrace | process_vm_readv | process_vm_writev | pidfd_getfd | kcmp => {
        inspect::inspect(asker)
    },
    prlimit64 | sched_setparam | sched_setscheduler | sched_setattr | sched_setaffinity
    | setpriority | ioprio_set => others::tune(*asker),
    setuid | setgid | setreuid | setregid | setresuid | setresgid => change_ids(*asker),
}

/// ioctl(2), by request.
fn request(asker: ProcessAsker<'_>) -> CallResult {
    match asker.caller.call.args[1] as u32 {
        request if SET_OWNER.contains(&request) => owners::of_socket(*asker),
        request if u64::from(request) == libc::FIOASYNC => owners::by_request(*asker),
        _ => foreground::set_foreground(asker),
    }
}

/// A change of IDs, where the user namespace has no other than the program's. Of another the kernel
/// would say that it means nothing; outside it means somebody whom the program may not become.
fn change_ids(asker: Asker<'_>) -> CallResult {
    use Sysno::*;
    let of_user = matches!(asker.number, setuid | setreuid | setresuid);
    let own = if of_user { asker.state.on_behalf.ids.0 } else { asker.state.on_behalf.ids.1 };
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
