//! What the view keeps from the sandbox: why a walk ended, and what it would have found.

use super::{
    FileAsker,
    object::{Target, class_of},
};
use audit::attempt;
use avc::Hint;
use confine::file_kind;
use flask::{AccessVector, Class, FileKind, Question, perm};
use inode_labels::Status;
use proc::{Mounts, path_of};
use realpath::{RealPaths, normal, path_from};
use rustix::{
    fs::{Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, accessat},
    io::{Errno, Result},
};
use std::{
    collections::{HashSet, VecDeque},
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};
use supervisor::Name;

const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The file system as it is outside of the view, for finding out what a denial is about. Nothing is
/// ever opened there.
#[derive(Debug, Default)]
pub struct Outside {
    /// The root, from before the view was entered; without a view, nothing is kept back.
    root: Option<OwnedFd>,
    /// Directories whose content the view leaves out.
    absent: Vec<PathBuf>,
    /// What stays in them.
    keep: HashSet<PathBuf>,
    /// Directories in the middle of what is granted that nobody can walk into.
    closed: Vec<PathBuf>,
    /// There are some in which nothing exists.
    has_hollows: bool,
    /// Where to look may wait for somebody, or tell somebody.
    mounts: Mounts,
}

/// What a look outside has come to.
#[derive(Debug)]
enum Sight {
    Object(Status),
    /// It lies where nobody looks for the sake of a name that the program has chosen.
    Unknown,
    Nothing,
}

impl Outside {
    /// Of the calling process, before it enters `view`.
    pub fn before(view: &confine::launch::View) -> Result<Self> {
        if view.is_plain() {
            return Ok(Self::default());
        }
        let flags = HANDLE | OFlags::DIRECTORY;
        let root = Some(rustix::fs::open("/", flags, Mode::empty())?);
        let paths = RealPaths::new();
        let real = |path: &PathBuf| paths.resolve(path).ok().filter(|path| path.is_dir());
        let closed = view.denied.iter().filter_map(real).collect();
        let has_hollows = !view.hollow.is_empty();
        let (absent, keep) = (view.absent.clone(), view.keep.iter().cloned().collect());
        let mut mounts = Mounts::own();
        // What the run works on it waits for anyway.
        mounts.trust(Path::new("/"));
        view.keep.iter().for_each(|path| mounts.trust(path));
        Ok(Self { root, absent, keep, closed, has_hollows, mounts })
    }

    /// Whether there are directories in the middle of what is granted that nobody can walk into.
    pub fn closes(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Whether the permissions of the file system refuse this user to use `path` so, whatever the
    /// view has there.
    pub fn refuses(&self, path: &Path, access: Access) -> bool {
        let refused = |result: Result<()>| result == Err(Errno::ACCESS);
        let Some(root) = self.root.as_ref() else {
            return refused(accessat(CWD, path, access, AtFlags::EACCESS));
        };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
        match self.find(root, parent) {
            Some(Ok(parent)) => refused(accessat(&parent, name, access, AtFlags::EACCESS)),
            Some(Err(errno)) => errno == Errno::ACCESS,
            None => false,
        }
    }

    /// Whether the view leaves out what is at `path`.
    fn leaves_out(&self, path: &Path) -> bool {
        self.absent.iter().any(|top| path.starts_with(top))
            && !path.ancestors().any(|above| self.keep.contains(above))
    }

    /// What there is at `path`, links followed. Names are the program's: a server would be asked
    /// for them, and told them, and an automounter would mount what they say.
    fn sight(&self, path: &Path) -> Sight {
        let Some(root) = self.root.as_ref() else { return Sight::Nothing };
        let Some(found) = self.find(root, path) else { return Sight::Unknown };
        let status = found.and_then(|found| Status::of(found.as_fd()));
        status.map_or(Sight::Nothing, Sight::Object)
    }

    /// What there is at `path`, links followed; `None` where nobody looks.
    fn find(&self, root: &OwnedFd, path: &Path) -> Option<Result<OwnedFd>> {
        let is_own = !self.mounts.has_distant() || path.starts_with("/proc");
        let (path, links) = match is_own {
            true => (path.to_owned(), ResolveFlags::empty()),
            false => (self.without_links(root, path)?, ResolveFlags::NO_SYMLINKS),
        };
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | links;
        Some(rustix::fs::openat2(root, below(&path), HANDLE, Mode::empty(), resolve))
    }

    /// `path` without its links; `None` as soon as it leads to what is distant.
    fn without_links(&self, root: &OwnedFd, path: &Path) -> Option<PathBuf> {
        const MOST: usize = 40;
        let mut at = PathBuf::from("/");
        let mut rest: VecDeque<OsString> = path.iter().map(OsStr::to_owned).collect();
        let mut links = 0;
        while let Some(part) = rest.pop_front() {
            match part.as_bytes() {
                b"." => continue,
                b"/" => at = PathBuf::from("/"),
                b".." => drop(at.pop()),
                _ => at.push(&part),
            }
            if self.mounts.is_distant(&at) {
                return None;
            }
            if let Ok(target) = rustix::fs::readlinkat(root, below(&at), Vec::new()) {
                links += 1;
                if links > MOST {
                    return None;
                }
                at.pop();
                let target = path_from(target.as_bytes());
                let parts: Vec<OsString> = target.iter().map(OsStr::to_owned).collect();
                parts.into_iter().rev().for_each(|part| rest.push_front(part));
            }
        }
        Some(at)
    }
}

/// An absolute path as one below the root.
fn below(path: &Path) -> &Path {
    let below = path.strip_prefix("/").unwrap_or(path);
    if below.as_os_str().is_empty() { Path::new(".") } else { below }
}

/// A use of a name that a walk did not find.
#[derive(Clone, Copy)]
pub struct Attempt<'a> {
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

impl Attempt<'_> {
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
                let _ = Target { tsid, tclass, hint: &hint }.allow(*asker, requested, &object);
            });
            true
        };
        let outside = &asker.files.outside;
        let sight = if self.new == New::Entry { Sight::Nothing } else { outside.sight(path) };
        let existing = match sight {
            // Nobody listens there: natively it fails, too.
            Sight::Object(status) if self.new == New::Socket && !status.kind.is_socket() => None,
            Sight::Object(status) => {
                Some((class_of(status.kind), label(path, file_kind(status.kind))))
            }
            Sight::Unknown => Some((Class::File, label(path, FileKind::Any))),
            Sight::Nothing => None,
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
        let is_there = |path: &&Path| !matches!(outside.sight(path), Sight::Nothing);
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
        if errno == Errno::NOENT && asker.files.paths.is_plainly_missing(asker.state, self.name) {
            return Ok(path.to_owned());
        }
        let tree = &asker.state.targets.tree;
        let base = if path.is_absolute() {
            PathBuf::new()
        } else {
            path_of(tree, asker.caller.base(dirfd)?)?
        };
        let full = beyond_links(normal(&base.join(path)));
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
    const MOST: usize = 40;
    for _ in 0..MOST {
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
