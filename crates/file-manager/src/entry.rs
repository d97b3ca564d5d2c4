//! A new entry in a directory: whether it may be made, and which label a new object gets there.

use super::{
    FileAsker,
    object::{FileObject, Seen, class_of, is_only_made},
};
use audit::Why;
use avc::Hint;
use confine::file_kind;
use flask::{AccessVector, Question, Sid, perm};
use mediation::inside::{LayerSubject, LayerSubjects};
use proc::path_of;
use rustix::{
    fs::{AtFlags, FileType},
    io::{Errno, Result},
};
use std::{
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
};

/// Whether `asker` may make an object `name` of `kind` in `parent` and use `requested` on it. The
/// new object's label: that of a more specific rule for its path, else what the security server
/// computes.
pub fn allow_new(
    asker: FileAsker<'_>,
    parent: &OwnedFd,
    name: &OsStr,
    kind: FileType,
    requested: AccessVector,
) -> Result<Sid> {
    let directory = allow_entry(asker, parent, name, kind)?;
    let class = class_of(kind);
    let allow = |tsid, requested| {
        let target = FileObject { tsid, tclass: class, hint: &Hint::default() };
        target.allow(*asker, requested, &|| entry_path(asker, parent, name))
    };
    let subjects = LayerSubjects::of(*asker)?;
    let (mut at_first, mut for_good) = (Vec::new(), Vec::new());
    for subject in subjects.iter() {
        let reserved = reserved_label(asker, &subject, (parent, name, kind))?;
        let is_only_made = |tsid| is_only_made(|requested| subject.grants(tsid, class, requested));
        let sid = match reserved.filter(|sid| !is_only_made(*sid)) {
            Some(sid) => sid,
            None => {
                let part = subject.part(&asker.state.inside.stack, directory.label.sid);
                let tsid = part.ok_or(Errno::ACCESS)?;
                let question = Question { ssid: subject.ssid, tsid, tclass: class };
                let computed = subject.server.compute_create(question, name.to_str());
                computed.map_err(|_| Errno::ACCESS)?
            }
        };
        at_first.push(reserved.unwrap_or(sid));
        for_good.push(sid);
    }
    let sid = subjects.compose(&for_good)?;
    if at_first != for_good {
        allow(subjects.compose(&at_first)?, perm::file::CREATE)?;
    }
    allow(sid, requested)?;
    Ok(sid)
}

/// Notes, for the report at the end, the link that has come to `name` in `parent`.
pub(super) fn note_link(asker: FileAsker<'_>, parent: &OwnedFd, name: &OsStr) {
    let tree = &asker.state.targets.tree;
    let place = || path_of(tree, parent).map(|directory| directory.join(name));
    asker.files.plantings.note_link(place);
}

/// Notes, for the report at the end, what has been made or written at `name` in `parent`.
pub(super) fn note_entry(asker: FileAsker<'_>, parent: &OwnedFd, name: &OsStr, is_new: bool) {
    let state = asker.state;
    if !asker.files.plantings.are_watched() || name.is_empty() {
        return;
    }
    let place = || path_of(&state.targets.tree, parent).map(|directory| directory.join(name));
    asker.files.plantings.note_at(place, is_new);
    if is_new && asker.claims.completes(parent, name).unwrap_or(true) {
        asker.files.plantings.note_for(place, Why::Repository);
    }
}

/// Notes, for the report at the end, that `name` was taken out of `parent`.
pub(super) fn note_removal(asker: FileAsker<'_>, parent: &OwnedFd, name: &OsStr) {
    let plantings = &asker.files.plantings;
    let found = || rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    if plantings.are_watched()
        && let Ok(directory) = path_of(&asker.state.targets.tree, parent)
    {
        plantings.removed(&directory.join(name), || found().err() == Some(Errno::NOENT));
    }
}

/// Whether `asker` may put an entry `name` into `parent`; the directory, seen. A denial is recorded
/// with the entry's path.
pub(super) fn allow_entry(
    asker: FileAsker<'_>,
    parent: &OwnedFd,
    name: &OsStr,
    kind: FileType,
) -> Result<Seen> {
    let directory = Seen::of(*asker, parent.as_fd())?;
    if !grants(asker, &directory, ADDS)
        && owns_name(asker, (&directory, ADDS), (parent, name, kind))?
    {
        return Ok(directory);
    }
    let Seen { label, class, .. } = &directory;
    let target = FileObject { tsid: label.sid, tclass: *class, hint: &label.hint };
    target.allow(*asker, ADDS, &|| entry_path(asker, parent, name))?;
    directory.allow_where_it_lies(*asker, ADDS, parent)?;
    // Where only entries are granted, they are in the directory itself, and in none that others
    // have made in it.
    if directory.lies_in_shared(*asker, parent)? {
        target.allow(*asker, perm::dir::WRITE, &|| entry_path(asker, parent, name))?;
    }
    Ok(directory)
}

/// Whether `asker` may take the entry `name`, an object of `kind`, out of `parent`.
pub(super) fn allow_removal(
    asker: FileAsker<'_>,
    parent: &OwnedFd,
    name: &OsStr,
    kind: FileType,
) -> Result<()> {
    let directory = Seen::of(*asker, parent.as_fd())?;
    let removes = perm::dir::SEARCH | perm::dir::REMOVE_NAME;
    if !grants(asker, &directory, removes)
        && owns_name(asker, (&directory, removes), (parent, name, kind))?
    {
        return Ok(());
    }
    directory.allow(*asker, removes, parent)
}

const ADDS: AccessVector = AccessVector(perm::dir::ADD_NAME.0 | perm::dir::SEARCH.0);

/// Whether `asker` may put any entry into `parent`.
pub(super) fn adds(asker: FileAsker<'_>, parent: &OwnedFd) -> Result<bool> {
    Ok(grants(asker, &Seen::of(*asker, parent.as_fd())?, ADDS))
}

fn grants(asker: FileAsker<'_>, directory: &Seen, requested: AccessVector) -> bool {
    let Seen { label, class, .. } = directory;
    let question = Question { ssid: asker.ssid, tsid: label.sid, tclass: *class };
    asker.state.caches.file.grants(question, requested, &label.hint)
}

/// Whether each policy that does not grant `requested` on the directory has a rule that reserves
/// the name in it for files that `asker` may make and remove: to grant that is to grant this one
/// entry, whatever holds for the others.
fn owns_name(
    asker: FileAsker<'_>,
    (directory, requested): (&Seen, AccessVector),
    entry: (&OwnedFd, &OsStr, FileType),
) -> Result<bool> {
    // A rule about the name says nothing of where the directory lay before.
    if !directory.label.also().is_empty() {
        return Ok(false);
    }
    let tclass = class_of(entry.2);
    let changes = match entry.2 {
        FileType::Directory => perm::dir::CREATE | perm::dir::RMDIR,
        _ => perm::file::CREATE | perm::file::UNLINK,
    };
    for subject in LayerSubjects::of(*asker)?.iter() {
        let around = subject.part(&asker.state.inside.stack, directory.label.sid);
        if around.is_some_and(|around| subject.grants(around, directory.class, requested)) {
            continue;
        }
        let reserved = reserved_label(asker, &subject, entry)?;
        if !reserved.is_some_and(|tsid| subject.grants(tsid, tclass, changes)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is said of a name that something has. That `EEXIST` is followed by `ENOENT` has programs
/// try for ever (`mkdir` with all parents), so who must not know of it may not make it.
pub(super) fn taken(asker: FileAsker<'_>, object: &OwnedFd) -> Errno {
    let Ok(seen) = Seen::of(*asker, object.as_fd()) else { return Errno::EXIST };
    if seen.grants(*asker, perm::file::GETATTR) {
        return Errno::EXIST;
    }
    // For the record.
    let _ = seen.allow(*asker, perm::file::GETATTR, object);
    Errno::ACCESS
}

pub(super) fn entry_path(asker: FileAsker<'_>, parent: &OwnedFd, name: &OsStr) -> String {
    let path = path_of(&asker.state.targets.tree, parent).unwrap_or_default().join(name);
    path.to_string_lossy().into_owned()
}

/// Whether a rule of some policy reserves `name` in `parent` for another label than the
/// directory's.
pub(super) fn is_reserved(
    asker: FileAsker<'_>,
    entry: (&OwnedFd, &OsStr, FileType),
) -> Result<bool> {
    for subject in LayerSubjects::of(*asker)?.iter() {
        if reserved_label(asker, &subject, entry)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The label that a rule of a policy reserves for `name` in `parent`, where it is another than the
/// rules give the directory.
fn reserved_label(
    asker: FileAsker<'_>,
    subject: &LayerSubject<'_>,
    (parent, name, kind): (&OwnedFd, &OsStr, FileType),
) -> Result<Option<Sid>> {
    if name.is_empty() {
        return Ok(None);
    }
    let directory = path_of(&asker.state.targets.tree, parent)?;
    let path = directory.join(name);
    let kind = file_kind(kind);
    let by_rule = if asker.claims.completes(parent, name)? {
        // It would be part of a repository: what Git obeys there.
        subject.labels.of_path_by_names(&path, &directory.join(".git/config"), kind)
    } else {
        subject.labels.of_path(&path, kind)
    };
    let around = subject.labels.of_path(&directory, flask::FileKind::Dir);
    Ok((by_rule != around).then_some(by_rule))
}
