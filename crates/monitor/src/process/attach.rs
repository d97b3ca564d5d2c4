//! Reaching a process by its number, where there are several domains, or PIDs are the machine's.
//!
//! A caller can make its call as late as it likes (`SCHED_IDLE`). By then the number may be that of
//! a process in another domain, or outside.

use audit::Refusal;
use mediation::{
    call::{Answer, Asker, CallResult},
    subject::{LabelGeneration, is_gone, label_generation},
};
use rustix::io::{Errno, Result};
use supervisor::{
    KeptNumber, kill_inside,
    ptrace::{Event, Registers, Seized},
};

/// Whether a request of ptrace(2) begins to trace somebody. All others are about whom the caller
/// traces already.
pub(super) fn is_attach(request: i32) -> bool {
    [libc::PTRACE_ATTACH, libc::PTRACE_SEIZE].contains(&request.cast_unsigned())
}

/// ptrace(2) that begins to trace `target`, as policy lets.
pub(super) fn attach(asker: Asker<'_>, target: &Tracee) -> CallResult {
    let refusal = refusal(
        asker,
        target.inner,
        "the number had come to a process of another domain when the call was made; the process was killed",
        "trace a process that nobody ends meanwhile",
    );
    let _turn = asker.state.targets.execs.turn();
    make_held(asker, || target.is_still_it(asker), &refusal)
}

/// Limits, priorities and processors of `target`, which policy lets the caller change. What was
/// changed of another process would stay, so where PIDs are the machine's, the number is kept.
pub(super) fn tune(asker: Asker<'_>, target: Option<Tracee>) -> CallResult {
    let own = asker.caller.identity()?;
    let Some(target) = target else { return Ok(Answer::Continue) };
    if own.pid != own.inner_pid {
        return reach_held(asker, &[target]);
    }
    let is_it = || target.is_same_process(asker);
    make_kept(asker, target.outer, is_it, &of_another(asker, &target))
}

/// The caller makes a call itself while `pid`, for whom `is_it` says that it is right, keeps its
/// number.
pub(super) fn make_kept(
    asker: Asker<'_>,
    pid: u32,
    is_it: impl Fn() -> bool,
    refusal: &Refusal,
) -> CallResult {
    let _alone = asker.state.targets.execs.alone();
    let _kept = KeptNumber::new(&asker.state.targets.tree.proc, pid)?;
    if !is_it() {
        return Err(Errno::SRCH);
    }
    make_held(asker, is_it, refusal)
}

/// Comparing what `targets` have (kcmp(2)); and changing them, where the run has PIDs of its own.
pub(super) fn reach_held(asker: Asker<'_>, targets: &[Tracee]) -> CallResult {
    let Some(first) = targets.first() else { return Ok(Answer::Continue) };
    let are_they = || targets.iter().all(|target| target.is_same_process(asker));
    let _turn = asker.state.targets.execs.turn();
    make_held(asker, are_they, &of_another(asker, first))
}

fn of_another(asker: Asker<'_>, target: &Tracee) -> Refusal {
    refusal(
        asker,
        target.inner,
        "the number had come to another process when the call was made; the caller was killed",
        "name a process, or a thread, that does not end meanwhile",
    )
}

/// The caller makes the call itself, and is held where it comes back: if it has reached another
/// process than was decided, it ends before it can ask for anything.
fn make_held(asker: Asker<'_>, is_it: impl FnOnce() -> bool, refusal: &Refusal) -> CallResult {
    let (tid, id) = (asker.caller.call.tid, asker.caller.call.id);
    let caller = asker.caller.identity()?.pid;
    // A call that is interrupted ends, whatever it waits for.
    let is_over = || false;
    let seized = Seized::new(caller, tid, is_over)?;
    let listener = &asker.state.targets.listener;
    // A caller that has been killed meanwhile, or another thread with its number, is only let go.
    let goes_on = listener.is_valid(id) && listener.send_continue(id).is_ok();
    let signal = match seized.wait(is_over)? {
        Some(Event::Stopped { signal }) => signal,
        Some(Event::Executed) => 0,
        Some(Event::Gone) | None => return Ok(Answer::Elsewhere),
    };
    let is_done = || Registers::of(tid).is_ok_and(|registers| registers.result().is_ok());
    if goes_on && is_done() && !is_it() {
        let _ = asker.refuse(refusal);
        kill_inside(&asker.state.targets.tree, caller);
    }
    seized.detach(tid, signal, is_over);
    Ok(Answer::Elsewhere)
}

/// process_vm_readv(2) and process_vm_writev(2), as far as policy lets: what they have done nobody
/// takes back.
pub(super) fn reach(asker: Asker<'_>, pid: i32) -> CallResult {
    let own = asker.caller.identity()?;
    let pid = u32::try_from(pid).map_err(|_| Errno::SRCH)?;
    if pid == own.inner_pid {
        // While its thread is in the call, it has its number.
        return Ok(Answer::Continue);
    }
    Err(asker.refuse(&refusal(
        asker,
        pid,
        "in a run with several domains the number may be that of another domain's process by the time that the kernel \
         looks",
        "open /proc/PID/mem, or trace the process; debuggers do when they see this error",
    )))
}

fn refusal(asker: Asker<'_>, pid: u32, reason: &'static str, instead: &'static str) -> Refusal {
    Refusal {
        errno: Errno::PERM,
        by: "the process object manager",
        tclass: "process",
        missing: asker.number.name(),
        object: format!("process {pid}"),
        reason,
        instead,
    }
}

/// Whom a number meant.
pub(super) struct Tracee {
    inner: u32,
    outer: u32,
    generation: LabelGeneration,
}

impl Tracee {
    pub(super) fn of(asker: Asker<'_>, inner: i32) -> Result<Self> {
        let inner = u32::try_from(inner).map_err(|_| Errno::SRCH)?;
        let outer = asker.state.targets.tree.outer_pid(inner, asker.caller.identity()?)?;
        Ok(Self { inner, outer, generation: label_generation(asker.state, outer)? })
    }

    /// Those that can be of another domain by the time that the kernel looks: the caller keeps its
    /// own numbers while it makes a call, and in a run with one domain all have the same label. Of
    /// what is outside, Landlock lets nobody compare anything.
    pub(super) fn all(asker: Asker<'_>, numbers: &[i32]) -> Result<Vec<Self>> {
        let own = asker.caller.identity()?;
        let is_own = |it: i32| [own.inner_pid, own.inner_tid].contains(&it.cast_unsigned());
        let numbers = numbers.iter().copied();
        let others = numbers.filter(|it| !is_own(*it) && !asker.state.subjects.cannot_differ_yet());
        others.map(|it| Self::of(asker, it)).collect()
    }

    /// The same of who is to be tuned, which may be outside by then, too, where PIDs are the
    /// machine's.
    pub(super) fn to_tune(asker: Asker<'_>, number: i32) -> Result<Option<Self>> {
        let own = asker.caller.identity()?;
        let is_own = [own.inner_pid, own.inner_tid].contains(&number.cast_unsigned());
        let all_are_alike = asker.state.subjects.cannot_differ_yet() && own.pid != own.inner_pid;
        (!is_own && !all_are_alike).then(|| Self::of(asker, number)).transpose()
    }

    /// Whether the number means nobody else. Whoever is traced by it has it still.
    fn is_still_it(&self, asker: Asker<'_>) -> bool {
        let Ok(own) = asker.caller.identity() else { return false };
        match asker.state.targets.tree.outer_pid(self.inner, own) {
            Ok(outer) => {
                let generation = label_generation(asker.state, outer);
                outer == self.outer && generation == Ok(self.generation)
            }
            Err(error) => error == Errno::SRCH,
        }
    }

    /// Whether the number means the same process, whatever it has entered, or nobody any more.
    fn is_same_process(&self, asker: Asker<'_>) -> bool {
        let Ok(own) = asker.caller.identity() else { return false };
        let tree = &asker.state.targets.tree;
        let outer = match tree.outer_pid(self.inner, own) {
            Err(error) => return error == Errno::SRCH,
            Ok(outer) => outer,
        };
        match tree.proc.started(outer) {
            Ok(started) => outer == self.outer && started == self.generation.started,
            Err(error) => is_gone(error),
        }
    }
}
