//! Calls that find nothing in the view: why, and what they would have found.

use super::{
    FileAsker,
    object::{FileObject, class_of},
    outside::{HANDLE, OutsideLookup},
};
use audit::attempt;
use avc::Hint;
use confine::file_kind;
use flask::{AccessVector, Class, FileKind, Question, perm};
use proc::path_of;
use realpath::{MOST_LINKS, climbs, normal, path_from};
use rustix::{
    fs::Mode,
    io::{Errno, Result},
};
use std::path::{Path, PathBuf};
use supervisor::Name;

/// A use of a name that a walk did not find.
#[derive(Clone, Copy)]
pub struct MissingName<'a> {
    /// As the program has given it.
    pub name: Name<'a>,
    /// What for.
    pub requested: AccessVector,
    /// Whether something new would be made.
    pub new: New,
}

/// Whether an attempt makes something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum New {
    /// It uses what is there.
    No,
    /// It would use what is there, and make what is not.
    IfMissing,
    /// It is about the entry, whatever is there.
    Entry,
    /// Nothing, and it can use nothing but a socket.
    Socket,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What the program is told.
    pub errno: Errno,
    /// Policy has a part in that.
    pub refused: bool,
}

impl<'a> MissingName<'a> {
    /// A use of what is there, which makes nothing.
    pub fn of(name: Name<'a>, requested: AccessVector) -> Self {
        Self { name, requested, new: New::No }
    }

    /// What it means for the program that the walk in the view ended by `errno`. Recorded if policy
    /// is the reason: if outside of the view there is what was looked for, or it would have been
    /// made there. What does not exist anywhere is no denial, whatever policy would have said of
    /// it.
    pub fn ended(self, asker: FileAsker<'_>, errno: Errno) -> Ended {
        let outside = &asker.files.outside;
        let ended = |errno, refused| Ended { errno, refused };
        let is_nameless = self.name.path.as_os_str().is_empty();
        if outside.root.is_none() || is_nameless || !matches!(errno, Errno::NOENT | Errno::ACCESS) {
            return ended(errno, false);
        }
        let Ok(path) = self.path(asker, errno) else { return ended(errno, false) };
        if errno == Errno::ACCESS {
            if !outside.closed.iter().any(|top| path.starts_with(top)) {
                // The permissions of the file system, as outside.
                return ended(errno, false);
            }
            let recorded = self.record(asker, &path);
            // Whether something exists is no secret where it is denied but not hidden.
            return ended(if recorded { Errno::ACCESS } else { Errno::NOENT }, true);
        }
        let tsid = asker.labels().of_path(&path, FileKind::Any);
        let question = Question { ssid: asker.ssid, tsid, tclass: Class::File };
        let exists =
            || asker.state.caches.file.grants(question, perm::file::GETATTR, &Hint::default());
        let refused = outside.leaves_out(&path) || !exists();
        if refused {
            self.record(asker, &path);
        }
        ended(errno, refused)
    }

    /// Records that policy refuses this use of `path`, which the view keeps back; `false` if there
    /// is nothing to refuse.
    fn record(self, asker: FileAsker<'_>, path: &Path) -> bool {
        let state = asker.state;
        let hint = Hint::default();
        let labels = asker.labels();
        let label = |path: &Path, kind| labels.of_path(path, kind);
        let object = || path.to_string_lossy().into_owned();
        let refuse = |tsid, tclass, requested| {
            // No answer brings it into the view.
            attempt::unasked(|| {
                let _ = FileObject { tsid, tclass, hint: &hint }.allow(*asker, requested, &object);
            });
            true
        };
        let outside = &asker.files.outside;
        let lookup =
            if self.new == New::Entry { OutsideLookup::Nothing } else { outside.lookup(path) };
        let existing = match lookup {
            // Nobody listens there: natively it fails, too.
            OutsideLookup::Object(status)
                if self.new == New::Socket && !status.kind.is_socket() =>
            {
                None
            }
            OutsideLookup::Object(status) => {
                Some((class_of(status.kind), label(path, file_kind(status.kind))))
            }
            OutsideLookup::Unknown => Some((Class::File, label(path, FileKind::Any))),
            OutsideLookup::Nothing => None,
        };
        if let Some((tclass, tsid)) = existing {
            let question = Question { ssid: asker.ssid, tsid, tclass };
            // What is denied may be seen, by policy, but there is no way to it: the right to use it
            // would make one.
            let seen = state.caches.file.grants(question, self.requested, &hint);
            let used = perm::file::READ | perm::file::OPEN;
            return refuse(tsid, tclass, if seen { used } else { self.requested });
        }
        let makes = matches!(self.new, New::IfMissing | New::Entry);
        let is_there = |path: &&Path| !matches!(outside.lookup(path), OutsideLookup::Nothing);
        match path.parent().filter(|parent| makes && is_there(parent)) {
            Some(parent) => {
                let added = perm::dir::ADD_NAME | perm::dir::SEARCH;
                refuse(label(parent, FileKind::Dir), Class::Dir, added)
            }
            None => false,
        }
    }

    /// Where the name leads, as far as there is something.
    fn path(self, asker: FileAsker<'_>, errno: Errno) -> Result<PathBuf> {
        let Name { dirfd, path, .. } = self.name;
        if errno == Errno::NOENT
            && asker.files.paths.now().is_plainly_missing(asker.state, self.name)
        {
            return Ok(path.to_owned());
        }
        let tree = &asker.state.targets.tree;
        let base = if path.is_absolute() {
            PathBuf::new()
        } else {
            path_of(tree, asker.caller.base(dirfd)?)?
        };
        let full = base.join(path);
        let end = || realpath::way(&full).pop();
        let climbs = climbs(&full) && !full.starts_with("/proc");
        let found = if climbs { end() } else { None };
        let full = found.unwrap_or_else(|| beyond_links(normal(&full)));
        if errno == Errno::NOENT && !asker.files.outside.has_hollows {
            return Ok(full);
        }
        // Links on the way may lead into what is covered.
        for part in full.ancestors() {
            if let Ok(found) = rustix::fs::open(part, HANDLE, Mode::empty()) {
                let rest = full.strip_prefix(part).unwrap_or(Path::new(""));
                return Ok(path_of(tree, found)?.join(rest));
            }
        }
        Ok(full)
    }
}

/// Where a path that leads to nothing ends, for a record. Of the path, only what is missing is
/// looked at.
fn beyond_links(mut path: PathBuf) -> PathBuf {
    for _ in 0..MOST_LINKS {
        let Some((link, target)) = last_link(&path) else { break };
        let rest = path.strip_prefix(&link).unwrap_or(Path::new("")).to_owned();
        let parent = link.parent().unwrap_or(Path::new("/"));
        path = normal(&parent.join(target).join(rest));
    }
    path
}

/// The innermost part of a path that is a link, unless a part within it exists and is none; and
/// what it holds. The links of `/proc` are those of the monitor.
fn last_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    if path.starts_with("/proc") {
        return None;
    }
    for part in path.ancestors() {
        match rustix::fs::readlink(part, Vec::new()) {
            Ok(target) => return Some((part.to_owned(), path_from(target.as_bytes()).to_owned())),
            Err(Errno::NOENT | Errno::ACCESS) => {}
            Err(_) => return None,
        }
    }
    None
}
