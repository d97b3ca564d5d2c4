//! Links that lead a program to what their maker may not touch.
//!
//! A program follows the symbolic links that it meets, and what they lead to it reaches with its
//! own rights. So whoever may make a link on its way could have it read or write in his place: it
//! would be his confused deputy. Among the domains of a run that is not so: what a link has led to
//! is reached with the rights of every domain that may make entries where the link lies, or that
//! one, beside the subject's own.
//!
//! The workspace brings links of its own, also where no domain may make any. They count as made by
//! each.

use crate::{
    cache::{AccessRequest, CheckedCache},
    call::Asker,
};
use audit::Refusal;
use avc::Hint;
use flask::{AccessVector, Class, FileKind, Question, Sid, perm};
use inode_labels::{FileRef, Status};
use proc::path_of;
use rustix::io::{Errno, Result};
use std::{
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
};

/// What shows no more than that something is there; `open`, which comes with another; and what only
/// says which program runs, where the domain that it runs in is decided by itself.
const HARMLESS: AccessVector = AccessVector(
    perm::file::GETATTR.0
        | perm::file::OPEN.0
        | perm::file::EXECUTE.0
        | perm::file::EXECUTE_NO_TRANS.0,
);

/// Whether all who may have made the links that the call was led by may do what is requested of
/// `cache`.
pub(crate) fn allow(
    asker: Asker<'_>,
    cache: &CheckedCache,
    request: &AccessRequest<'_>,
) -> Result<()> {
    let requested = AccessVector(request.requested.0 & !HARMLESS.0);
    let Some(links) = asker.caller.links.filter(|_| requested.0 != 0) else {
        return Ok(());
    };
    let files = &asker.state.caches.file;
    let outer = |sid| asker.state.inside.stack.outer(sid).ok_or(Errno::ACCESS);
    links.each(|link| {
        let (own, tsid) = (outer(asker.ssid)?, outer(request.tsid)?);
        let entry = link.map(|(directory, name)| entry(asker, directory, name)).transpose()?;
        let grants = |of: &CheckedCache, question, requested| {
            of.grants(question, requested, &Hint::default())
        };
        let may_link = |ssid: Sid| {
            entry.as_ref().is_none_or(|entry| {
                let of = |tsid, tclass| Question { ssid, tsid, tclass };
                let makes = |tsid| grants(files, of(tsid, Class::LnkFile), perm::file::CREATE);
                entry.is_brought
                    || grants(files, of(entry.directory, Class::Dir), perm::dir::ADD_NAME)
                    || entry.reserved.is_some_and(makes)
            })
        };
        let may_too =
            |ssid: Sid| grants(cache, Question { ssid, tsid, tclass: request.tclass }, requested);
        let policy = asker.state.policy.load();
        let mut others = policy.plan.domains.iter().copied().filter(|it| *it != own);
        match others.all(|it| !may_link(it) || may_too(it)) {
            true => Ok(()),
            false => Err(Errno::ACCESS),
        }
    })
}

/// Where a link lies, by the policy of the run.
struct Entry {
    /// The label of its directory.
    directory: Sid,
    /// The label of its name, if a rule reserves that.
    reserved: Option<Sid>,
    /// It lies in the workspace.
    is_brought: bool,
}

fn entry(asker: Asker<'_>, directory: &OwnedFd, name: &OsStr) -> Result<Entry> {
    let labels = &asker.state.labels;
    let status = Status::of(directory.as_fd())?;
    let path = || path_of(&asker.state.targets.tree, directory);
    let own = labels.of_file(&status, FileRef::Fd(directory.as_fd()), path)?.sid;
    let path = path()?;
    let by_name = labels.of_path(&path.join(name), FileKind::Symlink);
    let around = labels.of_path(&path, FileKind::Dir);
    let reserved = (by_name != around).then_some(by_name);
    Ok(Entry { directory: own, reserved, is_brought: path.starts_with(&asker.state.workspace) })
}

/// What is said of it.
pub(crate) fn refusal(request: &AccessRequest<'_>) -> Refusal {
    Refusal {
        errno: Errno::ACCESS,
        by: "a link that another domain may have made",
        tclass: request.tclass.name(),
        missing: "follow a link to",
        object: (request.object)(),
        reason: "the path leads there by a symbolic link in the workspace, or in a directory where another domain of the profile makes \
                 entries, and that domain may not do this itself: a link leads nobody to what its maker may not touch",
        instead: "have the program name the file itself, or grant the other domain the same",
    }
}
