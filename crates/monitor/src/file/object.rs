//! A file as an object: its label, its class, and asking about it.

use crate::{
    caller::path_of,
    gate::Asker,
    label::{Label, Status, normal},
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
}

impl Seen {
    /// Labels the file behind `fd`.
    pub(crate) fn of(asker: Asker<'_>, fd: BorrowedFd<'_>) -> Result<Self> {
        let status = Status::of(fd)?;
        let label = asker.gate.labels.of_file(&status, || path_of(&asker.gate.view, fd))?;
        Ok(Self { status, label, class: class_of(status.kind) })
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
    let Ok(full) = full.map(|base| normal(&base.join(path))) else { return false };
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
