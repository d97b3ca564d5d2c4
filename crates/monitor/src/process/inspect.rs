//! Looking into another process, and tracing it.

use super::{
    ProcessAsker, attach,
    others::{Targets, allow, ask},
    refusals::{Reach, refuse},
    send,
};
use flask::perm;
use mediation::{
    call::{Answer, Asker, CallResult},
    subject::{subject_of, watch},
    tracking::begin_tracking,
};
use proc::Identity;
use rustix::io::Errno;
use syscalls::Sysno;

pub(super) fn inspect(with_manager: ProcessAsker<'_>) -> CallResult {
    let asker = *with_manager;
    if let Some(later) = begin_tracking(asker) {
        return later;
    }
    let int = |n| asker.caller.int(n);
    let one = |n: usize| u32::try_from(int(n)).map(Targets::One).map_err(|_| Errno::SRCH);
    let ptrace = perm::process::PTRACE;
    let many = !asker.state.subjects.cannot_differ_yet();
    // By the time that the kernel looks, a descriptor or, where PIDs are the machine's, a number
    // may mean a process outside. Landlock keeps such a call inside, and nothing else.
    let bounded = with_manager.processes.has_envelope;
    let own = asker.caller.identity()?;
    let unsure = !bounded && own.pid == own.inner_pid;
    let is_own = |n: usize| send::is_of(own, int(n).cast_unsigned());
    match asker.number {
        Sysno::ptrace if int(0) == libc::PTRACE_TRACEME as i32 => {
            let &Identity { pid, parent, .. } = own;
            let tracer = Asker { ssid: subject_of(asker, parent)?, ..asker };
            ask(tracer, asker.ssid, ptrace, &|| "its child".to_owned())?;
            watch(asker.state, pid)?;
        }
        Sysno::ptrace if attach::is_attach(int(0)) && unsure => {
            allow(asker, &one(1)?, ptrace)?;
            return Err(refuse(asker, Reach::Number));
        }
        Sysno::ptrace if attach::is_attach(int(0)) && many => {
            let target = attach::Tracee::of(asker, int(1));
            allow(asker, &one(1)?, ptrace)?;
            return attach::attach(asker, &target?);
        }
        Sysno::ptrace => allow(asker, &one(1)?, ptrace)?,
        Sysno::process_vm_readv | Sysno::process_vm_writev if unsure && !is_own(0) => {
            allow(asker, &one(0)?, ptrace)?;
            return Err(refuse(asker, Reach::Number));
        }
        Sysno::process_vm_readv | Sysno::process_vm_writev if many => {
            allow(asker, &one(0)?, ptrace)?;
            return attach::reach(asker, int(0));
        }
        Sysno::kcmp => {
            let targets = attach::Tracee::all(asker, &[int(0), int(1)]);
            allow(asker, &one(0)?, ptrace)?;
            allow(asker, &one(1)?, ptrace)?;
            if unsure && !(is_own(0) && is_own(1)) {
                return Err(refuse(asker, Reach::Number));
            }
            return attach::reach_held(asker, &targets?);
        }
        Sysno::pidfd_getfd if many || !bounded => return Err(refuse(asker, Reach::Pidfd)),
        Sysno::pidfd_getfd => {
            allow(asker, &Targets::One(send::behind_pidfd(asker, int(0))?), ptrace)?;
        }
        _ => allow(asker, &one(0)?, ptrace)?,
    }
    // As for signals; Landlock refuses every process outside the sandbox.
    Ok(Answer::Continue)
}
