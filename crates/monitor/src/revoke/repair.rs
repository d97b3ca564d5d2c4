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
    let mut first: Option<(i32, Result<()>)> = None;
    let mut calls: Vec<Call> = Vec::new();
    // For each finding, what the calls come to: the result of one of them, or one already
    // there.
    let mut plans: Vec<std::result::Result<(usize, Action), Result<Action>>> = Vec::new();
    for (finding, flags) in findings.iter().zip(flags) {
        if let (Held::Descriptor(fd), Some(substitute)) = (finding.held, &finding.substitute) {
            let result = injector.replace(substitute.as_fd(), fd, flags != 0);
            plans.push(Err(result.map(|()| Action::Narrowed)));
            continue;
        }
        let call = match (finding.held, &first, &nothing) {
            (Held::Descriptor(fd) | Held::Connection(fd) | Held::Listener(fd), None, _) => {
                let result = injector.replace(refusal, fd, flags != 0);
                first = Some((fd, result));
                plans.push(Err(result.map(|()| Action::Replaced)));
                continue;
            }
            (
                Held::Descriptor(fd) | Held::Connection(fd) | Held::Listener(fd),
                Some((first, Ok(()))),
                _,
            ) => Ok(((Sysno::dup3, [*first as u64, fd as u64, flags, 0, 0, 0]), Action::Replaced)),
            (
                Held::Descriptor(_) | Held::Connection(_) | Held::Listener(_),
                Some((_, Err(error))),
                _,
            ) => Err(*error),
            (Held::Mapping(start, end), _, Some(Ok(fd))) => {
                // Pages beyond the end of a file: who touches them gets `SIGBUS`.
                let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
                let args = [start, end - start, finding.protection, flags, *fd as u64, 0];
                Ok(((Sysno::mmap, args), Action::Unmapped))
            }
            (Held::Mapping(..), _, Some(Err(error))) => Err(*error),
            (Held::Watch(fd, number), ..) => {
                let args = [fd as u64, number as u64, 0, 0, 0, 0];
                Ok(((Sysno::inotify_rm_watch, args), Action::Removed))
            }
            _ => Err(Errno::NOTSUP),
        };
        plans.push(match call {
            Ok((call, action)) => {
                calls.push(call);
                Ok((calls.len() - 1, action))
            }
            Err(error) => Err(Err(error)),
        });
    }
    let results = injector.calls(&calls);
    if let Some(Ok(fd)) = nothing {
        let _ = injector.call(Sysno::close, [fd as u64, 0, 0, 0, 0, 0]);
    }
    if let Some(errno) = injector.astray() {
        // Whoever makes other calls than it was to make may have made any.
        return findings.iter().map(|_| Err(errno)).collect();
    }
    let outcome = |plan: std::result::Result<(usize, Action), Result<Action>>| match plan {
        Ok((index, action)) => results[index].map(|_| action),
        Err(result) => result,
    };
    plans.into_iter().map(outcome).collect()
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
