//! What the view keeps from the sandbox.

use inode_labels::Status;
use proc::Mounts;
use realpath::{MOST_LINKS, RealPaths, path_from};
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

pub(super) const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The file system as it is outside of the view, for finding out what a denial is about. Nothing is
/// ever opened there.
#[derive(Debug, Default)]
pub struct Outside {
    /// The root, from before the view was entered; without a view, nothing is kept back.
    pub(super) root: Option<OwnedFd>,
    /// Directories whose content the view leaves out.
    absent: Vec<PathBuf>,
    /// What stays in them.
    keep: HashSet<PathBuf>,
    /// Directories in the middle of what is granted that nobody can walk into.
    pub(super) closed: Vec<PathBuf>,
    /// There are some in which nothing exists.
    pub(super) has_hollows: bool,
    /// Where to look may wait for somebody, or tell somebody.
    mounts: Mounts,
}

/// What a look outside has come to.
#[derive(Debug)]
pub(super) enum OutsideLookup {
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
    pub(super) fn leaves_out(&self, path: &Path) -> bool {
        self.absent.iter().any(|top| path.starts_with(top))
            && !path.ancestors().any(|above| self.keep.contains(above))
    }

    /// What there is at `path`, links followed. Names are the program's: a server would be asked
    /// for them, and told them, and an automounter would mount what they say.
    pub(super) fn lookup(&self, path: &Path) -> OutsideLookup {
        let Some(root) = self.root.as_ref() else { return OutsideLookup::Nothing };
        let Some(found) = self.find(root, path) else { return OutsideLookup::Unknown };
        let status = found.and_then(|found| Status::of(found.as_fd()));
        status.map_or(OutsideLookup::Nothing, OutsideLookup::Object)
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
                if links > MOST_LINKS {
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
