//! Renames: made on the program's behalf, from one directory descriptor to another.

use super::{
    attribute::is_closed,
    change::{LastComponent, NameChange, NamedEntry, file_system, removal},
    entry::{note_entry, note_link},
    kinds::move_only,
    missing_name::New,
    object::{FileObject, Seen, class_of},
};
use audit::Refusal;
use avc::Hint;
use confine::file_kind;
use flask::{AccessVector, Class, FileKind, Question, perm};
use inode_labels::{FileNumber, Status};
use mediation::call::{Answer, CallResult};
use proc::path_of;
use realpath::path_from;
use rustix::{
    fs::{Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags},
    io::{Errno, Result},
};
use std::{
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};
use supervisor::{Name, resolve_for_caller};

fn file_of(object: &OwnedFd) -> Result<FileNumber> {
    Status::of(object.as_fd()).map(|status| status.file_number())
}

fn is_dir(object: &OwnedFd) -> Result<bool> {
    Status::of(object.as_fd()).map(|status| status.kind == FileType::Directory)
}

/// What the kernel says of the rename of an entry that stands for a descriptor of the caller.
fn moved_descriptor(source: &NamedEntry, target: &NamedEntry, exchanges: bool) -> CallResult {
    let parent = file_of(&source.parent)?;
    if let Some(object) = &target.object
        && file_of(object)? == parent
    {
        return Err(if exchanges { Errno::INVAL } else { Errno::NOTEMPTY });
    }
    let same = source.name == target.name && parent == file_of(&target.parent)?;
    if same { Ok(Answer::Return(0)) } else { Err(Errno::PERM) }
}

impl NameChange<'_> {
    pub(super) fn rename(&self, from: (i32, usize), to: (i32, usize), flags: u32) -> CallResult {
        let flags = RenameFlags::from_bits_retain(flags);
        let (source, target) = self.both(from, to, flags)?;
        let object = source.object.as_ref().ok_or(Errno::NOENT)?;
        let seen = Seen::of(*self.asker, object.as_fd())?;
        self.check_kinds(&source, &target, &seen, flags)?;
        let exchanges = flags.contains(RenameFlags::EXCHANGE);
        if self.is_own_descriptor(&source)? {
            return moved_descriptor(&source, &target, exchanges);
        }
        if let Some(other) = &target.object
            && file_of(other)? == file_of(object)?
        {
            // Two names of one file: the kernel does nothing, and asks nobody.
            seen.allow(*self.asker, perm::file::GETATTR, object)?;
            return Ok(Answer::Return(0));
        }
        let tells_kinds = self.keep_labels(&source, &target)?;
        self.leave_directory(&source, &seen)?;
        let moved = self.moves_between(&source, &target, &seen)?;
        self.enter_directory(&target, &seen, perm::file::RENAME | moved, object)?;
        if let Some(replaced) = &target.object {
            self.replace(&source, &target, replaced, flags)?;
        }
        if flags.contains(RenameFlags::WHITEOUT) {
            // It leaves a device behind. File systems that know none say the same.
            return Err(Errno::INVAL);
        }
        self.make_rename(&source, &target, &seen, (flags, tells_kinds))?;
        Ok(Answer::Return(0))
    }

    /// What the kernel says of a rename by what is there, and is a directory or not.
    fn check_kinds(
        &self,
        source: &NamedEntry,
        target: &NamedEntry,
        seen: &Seen,
        flags: RenameFlags,
    ) -> Result<()> {
        if flags.contains(RenameFlags::NOREPLACE) && target.object.is_some() {
            return Err(Errno::EXIST);
        }
        if target.object.is_none() && self.is_in_proc(target)? {
            return Err(Errno::NOENT);
        }
        let exchanges = flags.contains(RenameFlags::EXCHANGE);
        if exchanges {
            let other = target.object.as_ref().ok_or(Errno::NOENT)?;
            if target.wants_dir && !is_dir(other)? {
                return Err(Errno::NOTDIR);
            }
        }
        let wants_dir = source.wants_dir || (target.wants_dir && !exchanges);
        if wants_dir && seen.class != Class::Dir { Err(Errno::NOTDIR) } else { Ok(()) }
    }

    /// Makes a rename that was decided. `tells_kinds`: only while what is moved is of the kinds
    /// that were seen.
    fn make_rename(
        &self,
        source: &NamedEntry,
        target: &NamedEntry,
        seen: &Seen,
        (flags, tells_kinds): (RenameFlags, bool),
    ) -> Result<()> {
        let exchanges = flags.contains(RenameFlags::EXCHANGE);
        let is_any_dir = seen.class == Class::Dir
            || target.object.as_ref().is_some_and(|it| is_dir(it) == Ok(true));
        let turn = is_any_dir.then(|| self.asker.files.plantings.turn());
        let (from, to) = (&source.parent, &target.parent);
        let make = || rustix::fs::renameat_with(from, &source.name, to, &target.name, flags);
        self.asker.not_overtaken()?;
        if tells_kinds {
            let other = target.object.as_ref().filter(|_| exchanges);
            let other = other.map(|other| Status::of(other.as_fd())).transpose()?;
            let kinds = std::iter::once(seen.status.kind).chain(other.map(|it| it.kind));
            move_only(&kinds.collect::<Vec<_>>(), make)?;
        } else {
            make()?;
        }
        self.note_move(source, target, exchanges);
        drop(turn);
        Ok(())
    }

    /// Both places of a rename, in the order in which the kernel looks at them (`do_renameat2` of
    /// `fs/namei.c`).
    fn both(
        &self,
        from: (i32, usize),
        to: (i32, usize),
        flags: RenameFlags,
    ) -> Result<(NamedEntry, NamedEntry)> {
        let others = RenameFlags::NOREPLACE | RenameFlags::WHITEOUT;
        let invalid = flags.contains(RenameFlags::EXCHANGE) && flags.intersects(others);
        if invalid || flags.intersects(!(others | RenameFlags::EXCHANGE)) {
            return Err(Errno::INVAL);
        }
        let old = self.asker.caller.path(from.1)?;
        let new = self.asker.caller.path(to.1)?;
        let source = self.walk_to_last((from.0, &old), New::No)?;
        let target = self.walk_to_last((to.0, &new), New::Entry)?;
        let apart = if source.object.is_some() {
            self.file_system_of(&source, (from.0, &old))?
                != self.file_system_of(&target, (to.0, &new))?
        } else {
            // What is not there is in no other file system: a view has more of them than there
            // are, but for `/proc`.
            self.lies_in_proc(&source)? != self.lies_in_proc(&target)?
        };
        if apart {
            return Err(Errno::XDEV);
        }
        let too_long = [source.is_too_long, target.is_too_long];
        let source = source.into_entry().ok_or(Errno::BUSY)?;
        let exclusive = flags.contains(RenameFlags::NOREPLACE);
        let target =
            target.into_entry().ok_or(if exclusive { Errno::EXIST } else { Errno::BUSY })?;
        if too_long[0] {
            return Err(Errno::NAMETOOLONG);
        }
        let source = source.of_caller(self.asker)?;
        let is_there = source.object.is_some();
        if is_there && too_long[1] {
            return Err(Errno::NAMETOOLONG);
        }
        Ok((source, if is_there { target.of_caller(self.asker)? } else { target }))
    }

    fn lies_in_proc(&self, place: &LastComponent) -> Result<bool> {
        let parent = place.entry.as_ref().map(|(parent, _)| parent).or(place.object.as_ref());
        let is_proc = |fd: &OwnedFd| self.asker.state.targets.tree.is_proc(fd.as_fd());
        parent.map_or(Ok(false), is_proc)
    }

    /// The file system that the last part of a path is looked up in.
    fn file_system_of(
        &self,
        place: &LastComponent,
        (dirfd, path): (i32, &Path),
    ) -> Result<(u32, u32)> {
        match (&place.entry, &place.object) {
            (Some((parent, _)), _) => file_system(parent),
            (None, Some(object)) if !path.ends_with("..") => file_system(object),
            _ => {
                let above = path.parent().filter(|above| !above.as_os_str().is_empty());
                let name = Name { dirfd, path: above.unwrap_or(Path::new(".")), follow: true };
                let (found, _) = resolve_for_caller(self.asker.caller, name);
                file_system(&found?.existing()?)
            }
        }
    }

    fn note_move(&self, source: &NamedEntry, target: &NamedEntry, exchanges: bool) {
        let state = self.asker.state;
        if !self.asker.files.plantings.are_watched() {
            return;
        }
        let path = |entry: &NamedEntry| {
            path_of(&state.targets.tree, &entry.parent).map(|it| it.join(&entry.name))
        };
        let plantings = &self.asker.files.plantings;
        let (from, to) = (path(source).ok(), path(target).ok());
        match (from.as_deref(), to.as_deref()) {
            (from, to) if exchanges => plantings.exchanged(from, to),
            (from, to) => plantings.moved(from, to, target.object.is_none()),
        }
        // What lay where nobody could look may not have been told.
        let leaves = |left: &NamedEntry, entered: &NamedEntry| {
            if is_closed(&left.parent).unwrap_or(true) {
                plantings.opened(|| path(entered));
            }
        };
        leaves(source, target);
        let is_link = |entry: &NamedEntry| {
            let status = entry.object.as_ref().map(|object| Status::of(object.as_fd()));
            status.is_some_and(|status| status.is_ok_and(|it| it.kind == FileType::Symlink))
        };
        if is_link(source) {
            note_link(self.asker, &target.parent, &target.name);
        }
        if exchanges {
            leaves(target, source);
            if is_link(target) {
                note_link(self.asker, &source.parent, &source.name);
            }
            note_entry(self.asker, &source.parent, &source.name, false);
        }
        note_entry(self.asker, &target.parent, &target.name, target.object.is_none());
    }

    /// Refuses to move a directory to where other rules hold for what is in it: most of that has
    /// not been seen, and would get its label there. As between file systems, so that programs copy
    /// it. Else whether it counts of what kind a file is that is moved so.
    fn keep_labels(&self, source: &NamedEntry, target: &NamedEntry) -> Result<bool> {
        let is_directory = |entry: &NamedEntry| entry.object.as_ref().map_or(Ok(false), is_dir);
        let is_any_directory = is_directory(source)? || is_directory(target)?;
        let state = self.asker.state;
        let path = |entry: &NamedEntry| {
            path_of(&state.targets.tree, &entry.parent).map(|path| path.join(&entry.name))
        };
        let (from, to) = match (path(source), path(target)) {
            (Ok(from), Ok(to)) => (from, to),
            // Where nobody can tell what holds, everything counts.
            _ if !is_any_directory => return Ok(true),
            (from, to) => (from?, to?),
        };
        let labels = self.asker.labels();
        if labels.agree(&from, &to) {
            let of = |path: &Path, kind| labels.of_path(path, kind);
            let others = [FileKind::Dir, FileKind::Symlink];
            let tells =
                |path: &Path| others.iter().any(|kind| of(path, *kind) != of(path, FileKind::File));
            return Ok(tells(&from) || tells(&to));
        }
        if !is_any_directory {
            return Ok(true);
        }
        let refuse = |object| self.refuse_move(object, &from, &to);
        Err(source.object.as_ref().map_or(Errno::XDEV, refuse))
    }

    /// Records why a directory is not moved, as a program that does not copy on `EXDEV` leaves no
    /// other trace: the first file in it that policy would not let be made where it was to go, or
    /// else the move itself. Nothing is made by that, so what is granted is no deed.
    fn refuse_move(&self, directory: &OwnedFd, from: &Path, to: &Path) -> Errno {
        const MOST: usize = 1000;
        let caches = &self.asker.state.caches;
        let labels = self.asker.labels();
        let mut left = vec![(PathBuf::new(), FileType::Directory)];
        let mut looked_at = 0;
        while let Some((below, kind)) = left.pop() {
            let place = |top: &Path| {
                if below.as_os_str().is_empty() { top.to_owned() } else { top.join(&below) }
            };
            let label = |top: &Path| labels.of_place(&place(top), file_kind(kind));
            let (before, after) = (label(from), label(to));
            let (tclass, hint) = (class_of(kind), &Hint::default());
            let question = Question { ssid: self.asker.ssid, tsid: after, tclass };
            if before != after && !caches.file.grants(question, perm::file::CREATE, hint) {
                let object = || place(to).to_string_lossy().into_owned();
                let target = FileObject { tsid: after, tclass, hint };
                if target.allow(*self.asker, perm::file::CREATE, &object).is_err() {
                    return Errno::XDEV;
                }
            }
            looked_at += 1;
            if kind == FileType::Directory && looked_at < MOST {
                left.extend(self.entries(directory, &below, MOST - left.len().min(MOST)));
            }
        }
        self.asker.refuse(&Refusal {
            errno: Errno::XDEV,
            by: "the file object manager",
            tclass: "dir",
            missing: "rename",
            object: from.to_string_lossy().into_owned(),
            reason: "other rules hold where it was to go, and most of what is in it has not been seen: it would get its label there",
            instead: "copy it, and remove the first, as mv(1) does when it sees this error",
        })
    }

    /// At most `most` entries of what lies at `below` in a directory.
    fn entries(&self, directory: &OwnedFd, below: &Path, most: usize) -> Vec<(PathBuf, FileType)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let here = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let opened = rustix::fs::openat2(
            directory,
            here,
            flags,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV,
        );
        let Ok(listing) = opened.and_then(Dir::new) else { return Vec::new() };
        let named =
            listing.flatten().filter(|it| !matches!(it.file_name().to_bytes(), b"." | b".."));
        named
            .take(most)
            .map(|it| (below.join(path_from(it.file_name().to_bytes())), it.file_type()))
            .collect()
    }

    /// A directory that changes its parent needs one permission more.
    fn moves_between(
        &self,
        source: &NamedEntry,
        target: &NamedEntry,
        seen: &Seen,
    ) -> Result<AccessVector> {
        let same = file_of(&source.parent)? == file_of(&target.parent)?;
        Ok(if seen.class == Class::Dir && !same { perm::dir::REPARENT } else { AccessVector::NONE })
    }

    /// The object that a rename removes, or swaps with `RENAME_EXCHANGE`.
    fn replace(
        &self,
        source: &NamedEntry,
        target: &NamedEntry,
        replaced: &OwnedFd,
        flags: RenameFlags,
    ) -> Result<()> {
        let seen = Seen::of(*self.asker, replaced.as_fd())?;
        self.leave_directory(target, &seen)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            let moved = self.moves_between(target, source, &seen)?;
            return self.enter_directory(source, &seen, perm::file::RENAME | moved, replaced);
        }
        seen.allow(*self.asker, removal(seen.class), replaced)
    }
}
