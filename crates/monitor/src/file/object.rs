//! A file as an object: its label, its class, and asking about it.

use crate::{
    caller::path_of,
    gate::{Asker, Gate},
    label::{Label, Status, normal, path_from},
    manager::Request,
};
use avc::Hint;
use flask::{AccessVector, Class, FileKind, Question, Sid, perm};
use rustix::{
    fs::FileType,
    io::{Errno, Result},
};
use std::{
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

/// A file found, with its label.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: Status,
    pub(crate) label: Arc<Label>,
    pub(crate) class: Class,
    /// Where it lies, if that was asked for its label.
    place: Option<PathBuf>,
}

impl Seen {
    /// Labels the file behind `fd`.
    pub(crate) fn of(asker: Asker<'_>, fd: BorrowedFd<'_>) -> Result<Self> {
        let status = Status::of(fd)?;
        let mut place = None;
        let label = asker
            .gate
            .labels
            .of_file(&status, || Ok(place.insert(path_of(&asker.gate.view, fd)?).clone()))?;
        Ok(Self { status, label, class: class_of(status.kind), place })
    }

    /// Where the file behind `fd`, which is this one, lies.
    pub(crate) fn place(&self, gate: &Gate, fd: impl AsFd) -> Result<PathBuf> {
        self.place.clone().map_or_else(|| path_of(&gate.view, fd), Ok)
    }

    /// Whether `asker` may use `requested` on this file: `EACCES` when not, `ENOENT` when it must not even know
    /// of the file.
    pub(crate) fn allow(
        &self,
        asker: Asker<'_>,
        requested: AccessVector,
        fd: impl AsFd,
    ) -> Result<()> {
        let object =
            || path_of(&asker.gate.view, &fd).unwrap_or_default().to_string_lossy().into_owned();
        let target = Target { tsid: self.label.sid, tclass: self.class, hint: &self.label.hint };
        target.allow(asker, requested, &object)
    }
}

/// What a file decision is about.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) tsid: Sid,
    pub(crate) tclass: Class,
    pub(crate) hint: &'a Hint,
}

impl Target<'_> {
    /// As [`Seen::allow`], for an object that is named by `object`.
    pub(crate) fn allow(
        self,
        asker: Asker<'_>,
        requested: AccessVector,
        object: &dyn Fn() -> String,
    ) -> Result<()> {
        let Self { tsid, tclass, hint } = self;
        let request = Request { tsid, tclass, requested, hint, object };
        if asker.gate.files.ask(asker, &request).is_ok() {
            return Ok(());
        }
        let question = Question { ssid: asker.ssid, tsid, tclass };
        let visible = asker.gate.files.grants(question, perm::file::GETATTR, hint);
        Err(if visible { Errno::ACCESS } else { Errno::NOENT })
    }
}

/// The class of a kind of file. The permissions of `common file` are the same bits in all of them.
pub(crate) fn class_of(kind: FileType) -> Class {
    match kind {
        FileType::Directory => Class::Dir,
        FileType::CharacterDevice => Class::ChrFile,
        FileType::BlockDevice => Class::BlkFile,
        FileType::Fifo => Class::FifoFile,
        FileType::Socket => Class::SockFile,
        FileType::Symlink => Class::LnkFile,
        FileType::RegularFile | FileType::Unknown => Class::File,
    }
}

/// Where a path that leads to nothing ends, for a record. Of the path, only what is missing is looked at.
fn beyond_links(mut path: PathBuf) -> PathBuf {
    const MOST: usize = 40;
    for _ in 0..MOST {
        let Some((link, target)) = last_link(&path) else { break };
        let rest = path.strip_prefix(&link).unwrap_or(Path::new("")).to_owned();
        let parent = link.parent().unwrap_or(Path::new("/"));
        path = normal(&parent.join(target).join(rest));
    }
    path
}

/// The innermost part of a path that is a link, unless a part within it exists and is none; and what it holds. The links
/// of `/proc` are those of the monitor.
fn last_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    if path.starts_with("/proc") {
        return None;
    }
    for part in path.ancestors() {
        match rustix::fs::readlink(part, Vec::new()) {
            Ok(target) => return Some((part.to_owned(), path_from(target.as_bytes()).to_owned())),
            Err(Errno::NOENT) => {}
            Err(_) => return None,
        }
    }
    None
}

/// Records that a name which does not exist in the view would have been refused outside it, so that a missing file
/// is explained when policy is why it is missing; whether it was recorded. The program sees `ENOENT` either way.
pub(crate) fn missing_name(
    asker: Asker<'_>,
    dirfd: i32,
    path: &Path,
    requested: AccessVector,
) -> bool {
    let gate = asker.gate;
    let base = || path_of(&gate.view, asker.caller.base(dirfd)?);
    let full = if path.is_absolute() { Ok(PathBuf::new()) } else { base() };
    let Ok(full) = full.map(|base| beyond_links(normal(&base.join(path)))) else { return false };
    let tsid = gate.labels.of_path(&full, FileKind::Any);
    let left_out = gate.absent.iter().any(|absent| full.starts_with(absent));
    let question = Question { ssid: asker.ssid, tsid, tclass: Class::File };
    let hint = Hint::default();
    let refused = left_out || !gate.files.grants(question, perm::file::GETATTR, &hint);
    if refused {
        let object = || full.to_string_lossy().into_owned();
        let target = Target { tsid, tclass: Class::File, hint: &hint };
        let _ = target.allow(asker, requested, &object);
    }
    refused
}
