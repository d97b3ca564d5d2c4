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
    let directory = allow_entry(asker, parent, name)?;
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
pub(super) fn allow_entry(asker: Asker<'_>, parent: &OwnedFd, name: &OsStr) -> Result<Seen> {
    let directory = Seen::of(asker, parent.as_fd())?;
    let Seen { label, class, .. } = &directory;
    let target = Target { tsid: label.sid, tclass: *class, hint: &label.hint };
    let adds = perm::dir::ADD_NAME | perm::dir::SEARCH;
    target.allow(asker, adds, &|| entry_path(asker, parent, name))?;
    Ok(directory)
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
