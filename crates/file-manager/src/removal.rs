//! Taking a name out of a directory: of the object that was decided, and of no other that somebody
//! outside has put in its place since. The kernel removes what has the name then, whatever it is.
//!
//! Where policy lets the name's own label be removed, too, that is as good. Else the object is one
//! that the run has made under a name that it may not change (`docs/decisions/guard.md`): it gets a
//! name that nobody knows, is compared there, and has its name back if it is another.

use super::{
    FileAsker,
    change::{NameChange, NamedEntry, removal, without_slashes},
    entry::{entry_path, note_removal},
    missing_name::{MissingName, New},
    object::Seen,
};
use audit::Refusal;
use avc::Hint;
use confine::file_kind;
use flask::{Class, Question, perm};
use inode_labels::Status;
use mediation::call::{Answer, CallResult};
use proc::path_of;
use rustix::{
    fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat},
    io::{Errno, Result},
    rand::{GetRandomFlags, getrandom},
};
use std::{
    ffi::OsString,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};
use supervisor::Name;

/// What became of a name that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removed {
    Gone,
    /// It names another object by now.
    IsAnother,
}

impl NameChange<'_> {
    /// How often what has the name is decided: somebody else exchanges it each time.
    const TURNS: u32 = 8;

    pub(super) fn remove(&self, place: (i32, usize), directory: bool) -> CallResult {
        for _ in 0..Self::TURNS {
            if self.remove_once(place, directory)? == Removed::Gone {
                return Ok(Answer::Return(0));
            }
        }
        Err(Errno::BUSY)
    }

    /// Decides what has the name, and removes it if that still has it.
    fn remove_once(&self, place: (i32, usize), directory: bool) -> Result<Removed> {
        let path = self.asker.caller.path(place.1)?;
        let root = if directory { irremovable(&path) } else { Errno::ISDIR };
        let entry = self.entry_of((place.0, &path), root, New::No)?;
        let name = Name { dirfd: place.0, path: &path, follow: false };
        let missing_name = MissingName::of(name, perm::file::UNLINK);
        let missing = || missing_name.ended(self.asker, Errno::NOENT).errno;
        let object = entry.object.as_ref().ok_or_else(missing)?;
        let seen = Seen::of(*self.asker, object.as_fd())?;
        let visible = || seen.grants(*self.asker, perm::file::GETATTR);
        // The slash at the end is looked at before who may remove it.
        match (directory, entry.wants_dir, seen.class) {
            (false, true, Class::Dir) if visible() => return Err(Errno::ISDIR),
            (false, true, class) if class != Class::Dir => return Err(Errno::NOTDIR),
            _ => {}
        }
        if self.is_own_descriptor(&entry)? {
            return Err(if directory { Errno::NOTDIR } else { Errno::PERM });
        }
        if directory && seen.class != Class::Dir && visible() && self.changes(&entry) {
            return Err(Errno::NOTDIR);
        }
        self.leave_directory(&entry, &seen)?;
        seen.allow(*self.asker, removal(seen.class), object)?;
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let removed = self.unlink(&entry, &seen, flags)?;
        if removed == Removed::Gone {
            note_removal(self.asker, &entry.parent, &entry.name);
        }
        Ok(removed)
    }

    /// Removes `entry`, which was decided as the object `seen`.
    fn unlink(&self, entry: &NamedEntry, seen: &Seen, flags: AtFlags) -> Result<Removed> {
        let any = self.may_remove_any(entry, seen);
        self.asker.not_overtaken()?;
        if any {
            return unlinkat(&entry.parent, &entry.name, flags).map(|()| Removed::Gone);
        }
        let aside = unknown_name()?;
        renameat(&entry.parent, &entry.name, &entry.parent, &aside)?;
        let is_it = found(&entry.parent, &aside) == Ok(seen.status);
        let removed = match is_it {
            true => unlinkat(&entry.parent, &aside, flags).map(|()| Removed::Gone),
            false => Ok(Removed::IsAnother),
        };
        if removed == Ok(Removed::Gone) {
            return removed;
        }
        let back = RenameFlags::NOREPLACE;
        match renameat_with(&entry.parent, &aside, &entry.parent, &entry.name, back) {
            Ok(()) => removed,
            Err(_) => Err(self.asker.refuse(&put_aside(self.asker, entry, &aside))),
        }
    }

    /// Whether whatever has the name may be removed.
    fn may_remove_any(&self, entry: &NamedEntry, seen: &Seen) -> bool {
        let Ok(directory) = path_of(&self.asker.state.targets.tree, &entry.parent) else {
            return false;
        };
        let place = directory.join(&entry.name);
        let tsid = self.asker.labels().of_place(&place, file_kind(seen.status.kind));
        let question = Question { ssid: self.asker.ssid, tsid, tclass: seen.class };
        let files = &self.asker.state.caches.file;
        tsid == seen.label.sid || files.grants(question, removal(seen.class), &Hint::default())
    }
}

/// Why a directory that a path names by `.`, `..` or `/` is not removed.
fn irremovable(path: &Path) -> Errno {
    use std::os::unix::ffi::OsStrExt;
    let path = without_slashes(path);
    match path.as_os_str().as_bytes().rsplit(|byte| *byte == b'/').next() {
        Some(b"..") => Errno::NOTEMPTY,
        Some(b"") => Errno::BUSY,
        _ => Errno::INVAL,
    }
}

fn found(directory: &OwnedFd, name: &OsString) -> Result<Status> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Status::of(openat(directory, name, flags, Mode::empty())?.as_fd())
}

fn unknown_name() -> Result<OsString> {
    let mut random = [0; 16];
    match getrandom(&mut random, GetRandomFlags::empty())? {
        16 => Ok(format!(".dewar-{:032x}", u128::from_ne_bytes(random)).into()),
        _ => Err(Errno::AGAIN),
    }
}

/// The refusal to remove what somebody else has made, which could not have its name back.
fn put_aside(asker: FileAsker<'_>, entry: &NamedEntry, aside: &OsString) -> Refusal {
    Refusal {
        errno: Errno::BUSY,
        by: "the file object manager",
        tclass: "file",
        missing: "unlink",
        object: entry_path(asker, &entry.parent, aside),
        reason: "somebody outside has made this in the place of what was to be removed, and something else has the name \
                 by now, so that it could not be put back",
        instead: "give it its name back from outside",
    }
}
