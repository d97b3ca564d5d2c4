//! A new entry in a directory: whether it may be made, and which label a new object gets there.

use super::object::{Seen, Target, class_of};
use crate::{caller::path_of, gate::Asker, label::file_kind};
use avc::Hint;
use flask::{AccessVector, Question, Sid, perm};
use rustix::{
    fs::FileType,
    io::{Errno, Result},
};
use std::{
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
};

/// Whether `asker` may make an object `name` of `kind` in `parent` and use `requested` on it. The new object's label:
/// that of a more specific rule for its path, else what the security server computes.
pub(crate) fn allow_new(
    asker: Asker<'_>,
    parent: &OwnedFd,
    name: &OsStr,
    kind: FileType,
    requested: AccessVector,
) -> Result<Sid> {
    let directory = allow_entry(asker, parent, name, kind)?;
    let class = class_of(kind);
    let sid = match reserved_label(asker, parent, name, kind)? {
        Some(sid) => sid,
        None => {
            let question = Question { ssid: asker.ssid, tsid: directory.label.sid, tclass: class };
            let computed = asker.gate.server.compute_create(question, name.to_str());
            computed.map_err(|_| Errno::ACCESS)?
        }
    };
    let hint = Hint::default();
    let target = Target { tsid: sid, tclass: class, hint: &hint };
    target.allow(asker, requested, &|| entry_path(asker, parent, name))?;
    Ok(sid)
}

/// Whether `asker` may put an entry `name` into `parent`; the directory, seen. A denial is recorded with the entry's
/// path.
pub(super) fn allow_entry(
    asker: Asker<'_>,
    parent: &OwnedFd,
    name: &OsStr,
    kind: FileType,
) -> Result<Seen> {
    let directory = Seen::of(asker, parent.as_fd())?;
    if !grants(asker, &directory, ADDS) && owns_name(asker, parent, name, kind)? {
        return Ok(directory);
    }
    let Seen { label, class, .. } = &directory;
    let target = Target { tsid: label.sid, tclass: *class, hint: &label.hint };
    target.allow(asker, ADDS, &|| entry_path(asker, parent, name))?;
    Ok(directory)
}

/// Whether `asker` may take the entry `name`, an object of `kind`, out of `parent`.
pub(super) fn allow_removal(
    asker: Asker<'_>,
    parent: &OwnedFd,
    name: &OsStr,
    kind: FileType,
) -> Result<()> {
    let directory = Seen::of(asker, parent.as_fd())?;
    let removes = perm::dir::SEARCH | perm::dir::REMOVE_NAME;
    if !grants(asker, &directory, removes) && owns_name(asker, parent, name, kind)? {
        return Ok(());
    }
    directory.allow(asker, removes, parent)
}

const ADDS: AccessVector = AccessVector(perm::dir::ADD_NAME.0 | perm::dir::SEARCH.0);

/// Whether `asker` may put any entry into `parent`.
pub(super) fn adds(asker: Asker<'_>, parent: &OwnedFd) -> Result<bool> {
    Ok(grants(asker, &Seen::of(asker, parent.as_fd())?, ADDS))
}

fn grants(asker: Asker<'_>, directory: &Seen, requested: AccessVector) -> bool {
    let Seen { label, class, .. } = directory;
    let question = Question { ssid: asker.ssid, tsid: label.sid, tclass: *class };
    asker.gate.files.grants(question, requested, &label.hint)
}

/// Whether a rule reserves `name` in `parent` for files that `asker` may make and remove: to grant
/// that is to grant this one entry, whatever holds for the others.
fn owns_name(asker: Asker<'_>, parent: &OwnedFd, name: &OsStr, kind: FileType) -> Result<bool> {
    let Some(tsid) = reserved_label(asker, parent, name, kind)? else { return Ok(false) };
    let tclass = class_of(kind);
    let changes = match kind {
        FileType::Directory => perm::dir::CREATE | perm::dir::RMDIR,
        _ => perm::file::CREATE | perm::file::UNLINK,
    };
    let question = Question { ssid: asker.ssid, tsid, tclass };
    Ok(asker.gate.files.grants(question, changes, &Hint::default()))
}

fn entry_path(asker: Asker<'_>, parent: &OwnedFd, name: &OsStr) -> String {
    let path = path_of(&asker.gate.view, parent).unwrap_or_default().join(name);
    path.to_string_lossy().into_owned()
}

/// The label that a rule reserves for `name` in `parent`, where it is another than the rules give the directory.
pub(super) fn reserved_label(
    asker: Asker<'_>,
    parent: &OwnedFd,
    name: &OsStr,
    kind: FileType,
) -> Result<Option<Sid>> {
    if name.is_empty() {
        return Ok(None);
    }
    let directory = path_of(&asker.gate.view, parent)?;
    let labels = &asker.gate.labels;
    let by_rule = labels.of_path(&directory.join(name), file_kind(kind));
    let around = labels.of_path(&directory, flask::FileKind::Dir);
    Ok((by_rule != around).then_some(by_rule))
}
