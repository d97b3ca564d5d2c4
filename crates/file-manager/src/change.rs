//! Calls that change what names exist: made on the program's behalf, by directory descriptor.

use super::{
    FileAsker,
    attribute::granted_mode,
    entry::{
        allow_entry, allow_new, allow_removal, entry_path, is_reserved, note_entry, note_link,
        taken,
    },
    missing_name::{MissingName, New},
    object::Seen,
    place::place_of,
};
use flask::{AccessVector, Class, Sid, perm};
use inode_labels::{FileRef, Status};
use mediation::call::{Answer, CallResult};
use proc::path_of;
use rustix::{
    fs::{Access, AtFlags, FileType, Mode},
    io::{Errno, Result},
};
use std::{
    ffi::OsString,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};
use supervisor::{Name, WalkedPath, walk};
use syscalls::Sysno;

/// Where the arguments of a call stand: `dirfd` before each path, or the working directory.
fn at(asker: FileAsker<'_>, with_dirfd: bool, n: usize) -> (i32, usize) {
    if with_dirfd { (asker.caller.int(n), n + 1) } else { (libc::AT_FDCWD, n) }
}

pub(super) fn decide(asker: FileAsker<'_>) -> CallResult {
    use Sysno::*;
    asker.same_ids()?;
    let change = NameChange { asker };
    let flags = |n| asker.caller.int(n);
    match asker.number {
        mkdir | mkdirat => change.mkdir(asker.number == mkdirat),
        mknod | mknodat => change.mknod(asker.number == mknodat),
        symlink => change.symlink(libc::AT_FDCWD, 1),
        symlinkat => change.symlink(flags(1), 2),
        rmdir => change.remove(at(asker, false, 0), true),
        unlink => change.remove(at(asker, false, 0), false),
        unlinkat if flags(2) & !libc::AT_REMOVEDIR != 0 => Err(Errno::INVAL),
        unlinkat => change.remove(at(asker, true, 0), flags(2) != 0),
        link => change.link(at(asker, false, 0), at(asker, false, 1), 0),
        linkat => change.link(at(asker, true, 0), at(asker, true, 2), flags(4)),
        rename => change.rename(at(asker, false, 0), at(asker, false, 1), 0),
        renameat => change.rename(at(asker, true, 0), at(asker, true, 2), 0),
        _ => change.rename(at(asker, true, 0), at(asker, true, 2), flags(4) as u32),
    }
}

pub(super) struct NameChange<'a> {
    pub(super) asker: FileAsker<'a>,
}

/// A name in a directory, and what it names.
pub(super) struct NamedEntry {
    pub(super) parent: OwnedFd,
    pub(super) name: OsString,
    pub(super) object: Option<OwnedFd>,
    pub(super) wants_dir: bool,
    /// It is a name in `/proc` of another process.
    is_foreign: bool,
}

/// What a path ends in: a name in a directory, or a directory by `.`, `..` or `/`.
pub(super) struct LastComponent {
    pub(super) entry: Option<(OwnedFd, OsString)>,
    pub(super) object: Option<OwnedFd>,
    wants_dir: bool,
    is_foreign: bool,
    /// There can be no such name.
    pub(super) is_too_long: bool,
}

impl LastComponent {
    pub(super) fn into_entry(self) -> Option<NamedEntry> {
        let Self { entry, object, wants_dir, is_foreign, .. } = self;
        entry.map(|(parent, name)| NamedEntry { parent, name, object, wants_dir, is_foreign })
    }
}

impl NamedEntry {
    /// The same, unless it is a name in `/proc` of another process.
    pub(super) fn of_caller(self, asker: FileAsker<'_>) -> Result<Self> {
        if self.is_foreign { Err(of_another(asker, self.object.as_ref())) } else { Ok(self) }
    }
}

/// What is said of a name in `/proc` of another process, of which nobody changes any. That there is
/// none says what that process has open: in a run with one domain everybody may know.
fn of_another(asker: FileAsker<'_>, object: Option<&OwnedFd>) -> Errno {
    match object {
        None if asker.state.subjects.cannot_differ_yet() => Errno::NOENT,
        _ => Errno::ACCESS,
    }
}

/// The file system that a file lies in. The kernel compares mounts, of which the view has more than
/// there are outside.
pub(super) fn file_system(fd: &OwnedFd) -> Result<(u32, u32)> {
    Ok(Status::of(fd.as_fd())?.device)
}

impl NameChange<'_> {
    /// Walks to a name that is to be made, without following a link at its end.
    fn new_entry(&self, (dirfd, n): (i32, usize)) -> Result<NamedEntry> {
        let path = self.asker.caller.path(n)?;
        let entry = self.possible((dirfd, &path), New::Entry)?.into_entry().ok_or(Errno::EXIST)?;
        match &entry.object {
            Some(object) if self.asker.state.subjects.cannot_differ_yet() => {
                Err(taken(self.asker, object))
            }
            _ => entry.of_caller(self.asker),
        }
    }

    pub(super) fn entry_of(
        &self,
        place: (i32, &Path),
        root: Errno,
        new: New,
    ) -> Result<NamedEntry> {
        self.possible(place, new)?.into_entry().ok_or(root)?.of_caller(self.asker)
    }

    /// As [`Self::walk_to_last`], unless there can be no such name.
    fn possible(&self, place: (i32, &Path), new: New) -> Result<LastComponent> {
        let place = self.walk_to_last(place, new)?;
        if place.is_too_long { Err(Errno::NAMETOOLONG) } else { Ok(place) }
    }

    /// Walks to what a path ends in, which may be no name.
    pub(super) fn walk_to_last(
        &self,
        (dirfd, path): (i32, &Path),
        new: New,
    ) -> Result<LastComponent> {
        let trimmed = without_slashes(path);
        let name = Name { dirfd, path: &trimmed, follow: false };
        let missing_name = MissingName { name, requested: perm::file::UNLINK, new };
        let ended = |errno| missing_name.ended(self.asker, errno).errno;
        let found = walk(self.asker.caller, name);
        let is_too_long = matches!(found, Err(Errno::NAMETOOLONG));
        let found = if is_too_long { self.beside(name) } else { found };
        let WalkedPath { entry, object, process, .. } = found.map_err(ended)?;
        let wants_dir = trimmed.as_os_str() != path.as_os_str();
        let is_foreign = process.is_some();
        Ok(LastComponent { entry, object, wants_dir, is_foreign, is_too_long })
    }

    /// A name that is too long, in the directory that it would lie in.
    fn beside(&self, name: Name<'_>) -> Result<WalkedPath> {
        let (above, last) = (name.path.parent(), name.path.file_name());
        let (above, last) = above.zip(last).ok_or(Errno::NAMETOOLONG)?;
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        let name = Name { path: above, follow: true, ..name };
        let WalkedPath { object, process, .. } = walk(self.asker.caller, name)?;
        let parent = object.ok_or(Errno::NOENT)?;
        Ok(WalkedPath { entry: Some((parent, last.to_owned())), process, ..WalkedPath::default() })
    }

    /// Makes a new object and labels it.
    fn make(
        &self,
        entry: &NamedEntry,
        kind: FileType,
        make: impl FnOnce(&NamedEntry, Sid) -> Result<()>,
    ) -> CallResult {
        if let Some(object) = &entry.object {
            return Err(taken(self.asker, object));
        }
        if (entry.wants_dir && kind != FileType::Directory) || self.is_in_proc(entry)? {
            return Err(Errno::NOENT);
        }
        let sid = allow_new(self.asker, &entry.parent, &entry.name, kind, perm::file::CREATE)?;
        let making = self.asker.labels().making(&entry.name);
        let witness = self.asker.witness(&entry.parent);
        self.asker.with_umask(|| make(entry, sid))?;
        let made = witness.and_then(|witness| witness.made(&entry.parent, &entry.name));
        // In doubt it may be what somebody else has made, which has the label of its place.
        if let Ok(Some(made)) = made {
            let status = Status::of(made.as_fd())?;
            self.asker.labels().created(&status, FileRef::Fd(made.as_fd()), sid);
        }
        drop(making);
        note_entry(self.asker, &entry.parent, &entry.name, true);
        Ok(Answer::Return(0))
    }

    fn mkdir(&self, with_dirfd: bool) -> CallResult {
        let place = at(self.asker, with_dirfd, 0);
        let mode = Mode::from_bits_retain(self.asker.caller.call.args[place.1 + 1] as u32 & 0o7777);
        let entry = self.new_entry(place)?;
        self.make(&entry, FileType::Directory, |entry, _| {
            rustix::fs::mkdirat(&entry.parent, &entry.name, mode)
        })
    }

    fn mknod(&self, with_dirfd: bool) -> CallResult {
        let place = at(self.asker, with_dirfd, 0);
        let args = &self.asker.caller.call.args;
        let raw_mode = args[place.1 + 1] as u32;
        let kind = match FileType::from_raw_mode(raw_mode) {
            // A mode without a type means a regular file.
            FileType::Unknown if raw_mode & libc::S_IFMT == 0 => FileType::RegularFile,
            FileType::Directory => return Err(Errno::PERM),
            FileType::Unknown | FileType::Symlink => return Err(Errno::INVAL),
            kind => kind,
        };
        let entry = self.new_entry(place)?;
        let mode = Mode::from_bits_retain(raw_mode & 0o7777);
        let device = args[place.1 + 2];
        self.make(&entry, kind, |entry, sid| {
            let object = || entry_path(self.asker, &entry.parent, &entry.name);
            let is_file = kind == FileType::RegularFile;
            // On what cannot be executed, the bits mean something else or nothing.
            let mode = if is_file { granted_mode(self.asker, sid, mode, &object) } else { mode };
            rustix::fs::mknodat(&entry.parent, &entry.name, kind, mode, device)
        })
    }

    fn symlink(&self, dirfd: i32, n: usize) -> CallResult {
        let target = self.asker.caller.path(0)?;
        if target.as_os_str().is_empty() {
            return Err(Errno::NOENT);
        }
        let entry = self.new_entry((dirfd, n))?;
        self.make(&entry, FileType::Symlink, |entry, _| {
            rustix::fs::symlinkat(&target, &entry.parent, &entry.name)?;
            note_link(self.asker, &entry.parent, &entry.name);
            Ok(())
        })
    }

    /// Whether an entry would lie in `/proc`, where nobody makes any.
    pub(super) fn is_in_proc(&self, entry: &NamedEntry) -> Result<bool> {
        self.asker.state.targets.tree.is_proc(entry.parent.as_fd())
    }

    /// Whether an entry stands for a descriptor of the caller. The kernel lets the process itself
    /// write in that directory, where nothing can be removed.
    pub(super) fn is_own_descriptor(&self, entry: &NamedEntry) -> Result<bool> {
        Ok(self.is_in_proc(entry)?
            && path_of(&self.asker.state.targets.tree, &entry.parent)?.ends_with("fd"))
    }

    /// Whether the kernel lets the caller change the names in a directory, which it looks at before
    /// what they name.
    pub(super) fn changes(&self, entry: &NamedEntry) -> bool {
        let number = std::os::fd::AsRawFd::as_raw_fd(&entry.parent).to_string();
        let access = Access::WRITE_OK | Access::EXEC_OK;
        let own_fds = &self.asker.state.targets.tree.own_fds;
        rustix::fs::accessat(own_fds, number, access, AtFlags::EACCESS).is_ok()
    }

    pub(super) fn leave_directory(&self, entry: &NamedEntry, object: &Seen) -> Result<()> {
        allow_removal(self.asker, &entry.parent, &entry.name, object.status.kind)
    }

    fn link(&self, from: (i32, usize), to: (i32, usize), flags: i32) -> CallResult {
        if flags & !(libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH) != 0 {
            return Err(Errno::INVAL);
        }
        let object = self.link_source(from, flags)?;
        let seen = Seen::of(*self.asker, object.as_fd())?;
        let entry = self.new_entry(to)?;
        if let Some(object) = &entry.object {
            return Err(taken(self.asker, object));
        }
        if entry.wants_dir || self.is_in_proc(&entry)? {
            return Err(Errno::NOENT);
        }
        if seen.class != Class::Dir && file_system(&object)? != file_system(&entry.parent)? {
            // Whether the object may be seen is policy's affair first.
            seen.allow(*self.asker, perm::file::GETATTR, &object)?;
            return Err(Errno::XDEV);
        }
        if seen.class == Class::Dir {
            // Not a matter of policy: a directory has one name.
            seen.allow(*self.asker, perm::file::GETATTR, &object)?;
            return Err(if self.changes(&entry) { Errno::PERM } else { Errno::ACCESS });
        }
        seen.allow(*self.asker, perm::file::LINK, &object)?;
        self.enter_directory(&entry, &seen, AccessVector::NONE, &object)?;
        // The object by the monitor's own descriptor: what was decided is what is linked.
        let tree = &self.asker.state.targets.tree;
        let number = std::os::fd::AsRawFd::as_raw_fd(&object).to_string();
        let follow = AtFlags::SYMLINK_FOLLOW;
        self.asker.not_overtaken()?;
        rustix::fs::linkat(&tree.own_fds, number, &entry.parent, &entry.name, follow)?;
        // What is written by the second name is written to the first, too.
        self.asker.files.plantings.note_at(|| place_of(*self.asker, &object), false);
        if seen.status.kind == FileType::Symlink {
            note_link(self.asker, &entry.parent, &entry.name);
        }
        note_entry(self.asker, &entry.parent, &entry.name, true);
        Ok(Answer::Return(0))
    }

    fn link_source(&self, from: (i32, usize), flags: i32) -> Result<OwnedFd> {
        let path = self.asker.caller.path(from.1)?;
        if path.as_os_str().is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            return self.asker.caller.base(from.0);
        }
        let follow = flags & libc::AT_SYMLINK_FOLLOW != 0;
        let name = Name { dirfd: from.0, path: &path, follow };
        let found = walk(self.asker.caller, name)?;
        match (&found.process, &found.object) {
            // A file of `/proc` gets no other name, but what is wrong with that may be said first.
            (Some(_), Some(object))
                if self.asker.state.subjects.cannot_differ_yet()
                    && self.asker.state.targets.tree.is_proc(object.as_fd())? => {}
            (Some(_), object) => return Err(of_another(self.asker, object.as_ref())),
            (None, _) => {}
        }
        found.existing()
    }

    /// Whether an existing object may get a name in another directory, where a more specific rule
    /// may reserve that name for another label.
    pub(super) fn enter_directory(
        &self,
        entry: &NamedEntry,
        object: &Seen,
        requested: AccessVector,
        fd: &OwnedFd,
    ) -> Result<()> {
        allow_entry(self.asker, &entry.parent, &entry.name, object.status.kind)?;
        object.allow(*self.asker, requested, fd)?;
        let (parent, name, kind) = (&entry.parent, &entry.name, object.status.kind);
        if is_reserved(self.asker, (parent, name, kind))? {
            allow_new(self.asker, parent, name, kind, perm::file::CREATE)?;
        }
        Ok(())
    }
}

/// What removing the last name of an object of a class asks for.
pub(super) fn removal(class: Class) -> AccessVector {
    if class == Class::Dir { perm::dir::RMDIR } else { perm::file::UNLINK }
}

/// `path` without slashes at its end, unless it is nothing else.
pub(super) fn without_slashes(path: &Path) -> std::path::PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes();
    let end =
        bytes.iter().rposition(|byte| *byte != b'/').map_or(bytes.len().min(1), |last| last + 1);
    realpath::path_from(&bytes[..end]).to_owned()
}
