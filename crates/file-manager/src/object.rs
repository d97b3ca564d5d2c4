//! A file as an object: its label, its class, and asking about it.

use super::place::{certain_place, told};
use avc::Hint;
use confine::file_kind;
use flask::{AccessVector, Class, Question, Sid, perm};
use inode_labels::{FileRef, Label, Status};
use mediation::{cache::AccessRequest, call::Asker, state::MonitorState};
use proc::path_of;
use rustix::{
    fs::FileType,
    io::{Errno, Result},
};
use std::{
    cell::OnceCell,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Permissions for which the present place of a file is not asked about: looking; `open`, which
/// comes with another; and removing, so that the run removes what it has made under a guarded name
/// by a rename.
const ASKED_BY_LABEL_ALONE: AccessVector =
    AccessVector(perm::file::GETATTR.0 | perm::file::OPEN.0 | perm::file::UNLINK.0);

/// Directories in which a run without a view makes names beside those of others, and has what it
/// has made: for its policy they are one with what others have in them.
const SHARED: [&str; 2] = ["/dev/shm", "/var/tmp"];

/// A file found, with its label.
#[derive(Debug)]
pub struct Seen {
    /// Which file it is.
    pub status: Status,
    /// Its label.
    pub label: Arc<Label>,
    /// Its class.
    pub class: Class,
    /// Where it lies, if that was asked.
    place: OnceCell<PathBuf>,
    /// Its label was read from the rules for this very place just now.
    needs_no_place: bool,
}

impl Seen {
    /// Labels the file behind `fd`.
    pub fn of(asker: Asker<'_>, fd: BorrowedFd<'_>) -> Result<Self> {
        let status = Status::of(fd)?;
        let place = OnceCell::new();
        let path = || Ok(known_or(&place, || certain_place(asker, fd))?.to_owned());
        let label = asker.labels().of_file(&status, FileRef::Fd(fd), path)?;
        let needs_no_place = place.get().is_some() && label.is_by_place();
        Ok(Self { status, label, class: class_of(status.kind), place, needs_no_place })
    }

    /// Where the file behind `fd`, which is this one, lies.
    pub(crate) fn place(&self, state: &MonitorState, fd: impl AsFd) -> Result<&Path> {
        known_or(&self.place, || path_of(&state.targets.tree, fd))
    }

    /// Whether policy grants `requested` on this file, without a record: for choosing an errno, not
    /// for giving access.
    pub(crate) fn grants(&self, asker: Asker<'_>, requested: AccessVector) -> bool {
        let question = Question { ssid: asker.ssid, tsid: self.label.sid, tclass: self.class };
        asker.state.caches.file.grants(question, requested, &self.label.hint)
    }

    /// Whether `asker` may use `requested` on this file: `EACCES` when not, `ENOENT` when it must
    /// not even know of the file.
    pub fn allow(&self, asker: Asker<'_>, requested: AccessVector, fd: impl AsFd) -> Result<()> {
        let object = || told(asker, &fd);
        let target =
            FileObject { tsid: self.label.sid, tclass: self.class, hint: &self.label.hint };
        target.allow(asker, requested, &object)?;
        let is_used = requested.0 & !ASKED_BY_LABEL_ALONE.0 != 0;
        let is_asked = matches!(self.class, Class::File | Class::Dir | Class::FifoFile);
        match is_used && is_asked && !self.needs_no_place {
            true => self.allow_where_it_lies(asker, requested, &fd),
            false => Ok(()),
        }
    }

    /// Whether it is a directory that lies in one which a run may share with others, and is
    /// labelled as that.
    pub(super) fn lies_in_shared(&self, asker: Asker<'_>, fd: impl AsFd) -> Result<bool> {
        let place = known_or(&self.place, || certain_place(asker, &fd))?;
        let is_top = SHARED.iter().any(|top| place == Path::new(top));
        Ok(!is_top && self.is_labelled_as_shared(asker, place, self.label.sid))
    }

    /// Whether `place` lies in a directory that a run may share with others, and `sid` is the label
    /// of what others have there.
    fn is_labelled_as_shared(&self, asker: Asker<'_>, place: &Path, sid: Sid) -> bool {
        let kind = file_kind(self.status.kind);
        SHARED
            .iter()
            .map(Path::new)
            .any(|top| place.starts_with(top) && sid == asker.labels().of_place(top, kind))
    }

    /// Whether `asker` may use so what a file or directory is called by now, too. Its label is that
    /// of where it was met: somebody outside may have renamed it since to a name that is hidden, or
    /// of which nothing may be changed, as editors and Git do with what they save.
    pub(crate) fn allow_where_it_lies(
        &self,
        asker: Asker<'_>,
        requested: AccessVector,
        fd: impl AsFd,
    ) -> Result<()> {
        let place = known_or(&self.place, || certain_place(asker, &fd))?;
        let tsid = asker.labels().of_place(place, file_kind(self.status.kind));
        // What the sandbox has made in a directory that it shares with others is its own, though
        // rules say nothing of it.
        let is_shared = || self.is_labelled_as_shared(asker, place, tsid);
        if tsid == self.label.sid || !place.is_absolute() || is_shared() {
            return Ok(());
        }
        let question = Question { ssid: asker.ssid, tsid, tclass: self.class };
        let grants =
            |requested| asker.state.caches.file.grants(question, requested, &Hint::default());
        // It was made with another label than its name's, and that one has been asked.
        if self.class == Class::Dir && is_only_made(grants) {
            return Ok(());
        }
        let target = FileObject { tsid, tclass: self.class, hint: &Hint::default() };
        target.allow(asker, requested, &|| place.to_string_lossy().into_owned())
    }
}

/// Whether objects with a label may be made, and not changed, as far as `grants` says. Whoever
/// makes one could not fill it: so it gets the label that it would have without a rule for its
/// name.
pub(super) fn is_only_made(grants: impl Fn(AccessVector) -> bool) -> bool {
    grants(perm::file::CREATE) && !grants(perm::file::WRITE)
}

/// What a file decision is about.
#[derive(Clone, Copy)]
pub struct FileObject<'a> {
    /// The label of the object.
    pub tsid: Sid,
    /// Its class.
    pub tclass: Class,
    /// Where the answer was found the last time.
    pub hint: &'a Hint,
}

impl FileObject<'_> {
    /// As [`Seen::allow`], for an object that is named by `object`.
    pub fn allow(
        self,
        asker: Asker<'_>,
        requested: AccessVector,
        object: &dyn Fn() -> String,
    ) -> Result<()> {
        let Self { tsid, tclass, hint } = self;
        let request = AccessRequest { tsid, tclass, requested, hint, object };
        if asker.ask(&asker.state.caches.file, &request).is_ok() {
            return Ok(());
        }
        let question = Question { ssid: asker.ssid, tsid, tclass };
        let visible = asker.state.caches.file.grants(question, perm::file::GETATTR, hint);
        Err(if visible { Errno::ACCESS } else { Errno::NOENT })
    }
}

/// The class of a kind of file. The permissions of `common file` are the same bits in all of them.
pub fn class_of(kind: FileType) -> Class {
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

/// What `cell` holds, which `find` finds out if nothing does.
fn known_or(cell: &OnceCell<PathBuf>, find: impl FnOnce() -> Result<PathBuf>) -> Result<&Path> {
    match cell.get() {
        Some(known) => Ok(known),
        None => find().map(|found| cell.get_or_init(|| found).as_path()),
    }
}

/// Whether a file lies, or lay, in a file system that a path leads to; a pipe, a socket or memory
/// does not.
pub(crate) fn has_name(asker: Asker<'_>, object: &OwnedFd) -> Result<bool> {
    let path = certain_place(asker, object)?;
    let memory = path.to_string_lossy().starts_with("/memfd:");
    Ok(path.is_absolute() && !(memory && rustix::fs::fstat(object)?.st_nlink == 0))
}
