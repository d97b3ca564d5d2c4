//! A file as an object: its label, its class, and asking about it.

use super::place::place_of;
use crate::{call::Asker, manager::Request, state::MonitorState};
use avc::Hint;
use flask::{AccessVector, Class, Question, Sid, perm};
use inode_labels::{Label, Status};
use proc::path_of;
use rustix::{
    fs::FileType,
    io::{Errno, Result},
};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
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
        let label =
            asker.labels().of_file(&status, || Ok(place.insert(place_of(asker, fd)?).clone()))?;
        Ok(Self { status, label, class: class_of(status.kind), place })
    }

    /// Where the file behind `fd`, which is this one, lies.
    pub(crate) fn place(&self, state: &MonitorState, fd: impl AsFd) -> Result<PathBuf> {
        self.place.clone().map_or_else(|| path_of(&state.targets.tree, fd), Ok)
    }

    /// Whether policy grants `requested` on this file, without a record: for choosing an errno, not
    /// for giving access.
    pub(crate) fn grants(&self, asker: Asker<'_>, requested: AccessVector) -> bool {
        let question = Question { ssid: asker.ssid, tsid: self.label.sid, tclass: self.class };
        asker.state.caches.file.grants(question, requested, &self.label.hint)
    }

    /// Whether `asker` may use `requested` on this file: `EACCES` when not, `ENOENT` when it must
    /// not even know of the file.
    pub(crate) fn allow(
        &self,
        asker: Asker<'_>,
        requested: AccessVector,
        fd: impl AsFd,
    ) -> Result<()> {
        let object = || place_of(asker, &fd).unwrap_or_default().to_string_lossy().into_owned();
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
        if asker.ask(&asker.state.caches.file, &request).is_ok() {
            return Ok(());
        }
        let question = Question { ssid: asker.ssid, tsid, tclass };
        let visible = asker.state.caches.file.grants(question, perm::file::GETATTR, hint);
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

/// Whether a file lies, or lay, in a file system that a path leads to; a pipe, a socket or memory
/// does not.
pub(crate) fn has_name(asker: Asker<'_>, object: &OwnedFd) -> Result<bool> {
    let path = place_of(asker, object)?;
    let memory = path.to_string_lossy().starts_with("/memfd:");
    Ok(path.is_absolute() && !(memory && rustix::fs::fstat(object)?.st_nlink == 0))
}
