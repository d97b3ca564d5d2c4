//! What a process holds and may not have any more is taken from it by calls in its place.

use super::{
    held::Finding,
    receipt::{Action, Held},
};
use rustix::io::{Errno, Result};
use std::os::fd::{AsFd as _, BorrowedFd};
use supervisor::{Call, Injector};
use syscalls::Sysno;

/// Repairs descriptors, mappings and watches by calls in the place of the process. Mappings show
/// `nothing` afterwards, and descriptors lead to `refusal`.
pub(super) fn repair(
    injector: &Injector<'_>,
    (nothing, refusal): (BorrowedFd<'_>, BorrowedFd<'_>),
    findings: &[Finding],
) -> Vec<Result<Action>> {
    let is_mapping = |finding: &&Finding| matches!(finding.held, Held::Mapping(..));
    let nothing = findings.iter().find(is_mapping).map(|_| injector.give(nothing));
    let flags = descriptor_flags(injector, findings);
    let mut repair = Repair { injector, nothing, refusal, replaced: None, calls: Vec::new() };
    let plan = |(finding, flags): (&Finding, u64)| repair.plan(finding, flags);
    let plans: Vec<Planned> = findings.iter().zip(flags).map(plan).collect();
    let results = injector.calls(&repair.calls);
    if let Some(Ok(fd)) = repair.nothing {
        let _ = injector.call(Sysno::close, [fd as u64, 0, 0, 0, 0, 0]);
    }
    if let Some(errno) = injector.astray() {
        // Whoever makes other calls than it was to make may have made any.
        return findings.iter().map(|_| Err(errno)).collect();
    }
    let outcome = |plan: Planned| match plan {
        Planned::Call(index, action) => results[index].map(|_| action),
        Planned::Done(result) => result,
    };
    plans.into_iter().map(outcome).collect()
}

/// How a finding is repaired.
enum Planned {
    /// By this one of the calls that are made together.
    Call(usize, Action),
    /// It was, or cannot be.
    Done(Result<Action>),
}

/// A repair while it is planned.
struct Repair<'a> {
    injector: &'a Injector<'a>,
    /// The descriptor that mappings are made of, if there are mappings.
    nothing: Option<Result<i32>>,
    refusal: BorrowedFd<'a>,
    /// The first descriptor that was to lead to `refusal`, and whether it does: then others become
    /// copies of it.
    replaced: Option<(i32, Result<()>)>,
    calls: Vec<Call>,
}

impl Repair<'_> {
    fn plan(&mut self, finding: &Finding, flags: u64) -> Planned {
        match (finding.held, &finding.substitute) {
            (Held::Descriptor(fd), Some(substitute)) => {
                let result = self.injector.replace(substitute.as_fd(), fd, flags != 0);
                Planned::Done(result.map(|()| Action::Narrowed))
            }
            (Held::Descriptor(fd) | Held::Connection(fd) | Held::Listener(fd), _) => {
                self.plan_refusal(fd, flags)
            }
            (Held::Mapping(start, end), _) => match self.nothing {
                Some(Ok(fd)) => {
                    // Pages beyond the end of a file: who touches them gets `SIGBUS`.
                    let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
                    let args = [start, end - start, finding.protection, flags, fd as u64, 0];
                    self.call((Sysno::mmap, args), Action::Unmapped)
                }
                Some(Err(error)) => Planned::Done(Err(error)),
                None => Planned::Done(Err(Errno::NOTSUP)),
            },
            (Held::Watch(fd, number), _) => {
                let args = [fd as u64, number as u64, 0, 0, 0, 0];
                self.call((Sysno::inotify_rm_watch, args), Action::Removed)
            }
            _ => Planned::Done(Err(Errno::NOTSUP)),
        }
    }

    /// A descriptor leads to `refusal` from now on.
    fn plan_refusal(&mut self, fd: i32, flags: u64) -> Planned {
        match self.replaced {
            None => {
                let result = self.injector.replace(self.refusal, fd, flags != 0);
                self.replaced = Some((fd, result));
                Planned::Done(result.map(|()| Action::Replaced))
            }
            Some((first, Ok(()))) => {
                let args = [first as u64, fd as u64, flags, 0, 0, 0];
                self.call((Sysno::dup3, args), Action::Replaced)
            }
            Some((_, Err(error))) => Planned::Done(Err(error)),
        }
    }

    fn call(&mut self, call: Call, action: Action) -> Planned {
        self.calls.push(call);
        Planned::Call(self.calls.len() - 1, action)
    }
}

/// For each finding, the flags of its descriptor as dup3(2) takes them.
fn descriptor_flags(injector: &Injector<'_>, findings: &[Finding]) -> Vec<u64> {
    let call = |finding: &Finding| match finding.held {
        Held::Descriptor(fd) | Held::Connection(fd) | Held::Listener(fd) => {
            Some((Sysno::fcntl, [fd as u64, libc::F_GETFD as u64, 0, 0, 0, 0]))
        }
        _ => None,
    };
    let mut results =
        injector.calls(&findings.iter().filter_map(call).collect::<Vec<_>>()).into_iter();
    let flags = |finding| {
        let got = call(finding).and_then(|_| results.next()?.ok());
        let closed_on_exec = got.is_some_and(|flags| flags & libc::FD_CLOEXEC as u64 != 0);
        if closed_on_exec { libc::O_CLOEXEC as u64 } else { 0 }
    };
    findings.iter().map(flags).collect()
}
