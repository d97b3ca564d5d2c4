//! The processes of a sandbox, as its monitor sees them.

use crate::{Identity, Orphans, Proc, deep::climb, named, none_if_gone, processes::Care, sys};
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags},
    io::{Errno, Result},
};
use std::{
    ffi::OsString,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// `PROC_SUPER_MAGIC` of `linux/magic.h`.
const PROC_MAGIC: i64 = 0x9fa0;
/// The inode number of the root of every proc file system (`PROC_ROOT_INO`).
const PROC_ROOT: u64 = 1;

/// The processes below one, of which the calling process is the parent.
#[derive(Debug)]
pub struct ProcessTree {
    /// The proc file system that shows the caller's PIDs.
    pub proc: Proc,
    /// `/proc/self/fd` of the caller, there.
    pub own_fds: OwnedFd,
    /// The first process.
    init: u32,
    /// What stands between the caller and the first process, and what that has left to the caller:
    /// where the sandbox has no PID namespace, which would leave it nothing.
    subreaper: Option<(u32, Orphans)>,
    /// The sandbox's PID namespace.
    pid_namespace: OnceLock<OwnedFd>,
}

impl ProcessTree {
    /// The processes below `init`, a child of the calling process or of its child `subreaper`.
    ///
    /// # Errors
    ///
    /// That of openat(2).
    pub fn new(proc: OwnedFd, init: u32, subreaper: Option<(u32, Orphans)>) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own_fds = rustix::fs::openat(&proc, "self/fd", flags, Mode::empty())?;
        let pid_namespace = OnceLock::new();
        Ok(Self { proc: Proc::new(proc), own_fds, init, subreaper, pid_namespace })
    }

    /// Whether a file lies in a proc file system.
    ///
    /// # Errors
    ///
    /// That of fstatfs(2).
    pub fn is_proc(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        Ok(rustix::fs::fstatfs(fd)?.f_type as i64 == PROC_MAGIC)
    }

    /// Whether a file is the root of a proc file system.
    ///
    /// # Errors
    ///
    /// Those of fstatfs(2) and fstat(2).
    pub fn is_proc_root(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        Ok(self.is_proc(fd)? && rustix::fs::fstat(fd)?.st_ino == PROC_ROOT)
    }

    /// The caller's PID of the process that the sandbox calls `inner`.
    ///
    /// # Errors
    ///
    /// `ESRCH` if there is none.
    pub fn outer_pid(&self, inner: u32, asker: &Identity) -> Result<u32> {
        if inner == asker.inner_pid {
            return Ok(asker.pid);
        }
        if asker.inner_pid == asker.pid {
            return Ok(inner);
        }
        match self.pid_namespace(asker).map(|it| sys::process_in(it, inner)) {
            None | Some(Err(Errno::NOTTY)) => {}
            Some(found) => {
                return found
                    .and_then(|it| if self.is_inside(it) { Ok(it) } else { Err(Errno::SRCH) });
            }
        }
        // The machine may have many more processes. One that changes its parent during a look may
        // be missed.
        let find = || self.with_number(inner, &self.inside()?).ok_or(Errno::SRCH);
        find().or_else(|_| find())
    }

    /// The PID namespace that all of the sandbox share: none of them can make another.
    fn pid_namespace(&self, asker: &Identity) -> Option<BorrowedFd<'_>> {
        if let Some(known) = self.pid_namespace.get() {
            return Some(known.as_fd());
        }
        let (path, flags) = (format!("{}/ns/pid", asker.pid), OFlags::RDONLY | OFlags::CLOEXEC);
        let namespace = rustix::fs::openat(&self.proc, path, flags, Mode::empty()).ok()?;
        // The asker may have ended, and its number be another's by now.
        if sys::process_in(namespace.as_fd(), asker.inner_pid) != Ok(asker.pid) {
            return None;
        }
        Some(self.pid_namespace.get_or_init(|| namespace).as_fd())
    }

    /// The thread of process `pid`, one of the machine's numbers, that the sandbox calls `inner`.
    ///
    /// # Errors
    ///
    /// [`Errno::NOENT`] if the process has no such thread.
    pub fn outer_tid(&self, pid: u32, inner: u32) -> Result<u32> {
        let is_it = |tid: &u32| self.proc.identity(*tid).is_ok_and(|it| it.inner_tid == inner);
        self.proc.threads(pid)?.into_iter().find(is_it).ok_or(Errno::NOENT)
    }

    /// The process, among `pids`, that the sandbox calls `inner`, or one of whose threads it does.
    fn with_number(&self, inner: u32, pids: &[u32]) -> Option<u32> {
        let process = |pid: &&u32| self.proc.identity(**pid).is_ok_and(|it| it.inner_pid == inner);
        let has_thread = |pid: &&u32| {
            let threads = self.proc.threads(**pid).unwrap_or_default();
            let mut threads = threads.into_iter().filter_map(|tid| self.proc.identity(tid).ok());
            threads.any(|thread| thread.inner_tid == inner)
        };
        pids.iter().find(process).or_else(|| pids.iter().find(has_thread)).copied()
    }

    /// Whether `inner`, a PID that nothing in the sandbox has, can only mean a process outside:
    /// there is one, and the sandbox has not come to that number. The kernel gives numbers out in
    /// order, and few processes newer than the newest can have ended already.
    #[must_use]
    pub fn is_outsider(&self, inner: u32) -> bool {
        const ENDED: u32 = 256;
        if self.proc.identity(inner).is_err() {
            return false;
        }
        let inside = self.inside().unwrap_or_default().into_iter();
        let numbers = inside.filter_map(|pid| Some(self.proc.identity(pid).ok()?.inner_pid));
        inner > numbers.max().unwrap_or(0) + ENDED
    }

    /// The processes of the sandbox: all that descend from its first, and those left to the caller
    /// or the subreaper.
    ///
    /// # Errors
    ///
    /// What keeps the caller from looking at one that has not ended.
    pub fn inside(&self) -> Result<Vec<u32>> {
        self.look_inside().map(|(found, _)| found)
    }

    /// The same; with it, whether one ended meanwhile that may have been inside, so that another
    /// one may have been missed.
    ///
    /// # Errors
    ///
    /// As of [`ProcessTree::inside`].
    pub fn look_inside(&self) -> Result<(Vec<u32>, bool)> {
        let own = std::process::id();
        let mut found = Vec::new();
        let mut parents = vec![self.init];
        parents.extend(self.subreaper.iter().flat_map(|(subreaper, _)| [own, *subreaper]));
        while let Some(parent) = parents.pop() {
            // Orphans come here and go: the kernel's list leaves others out when one ends while it
            // is read.
            let changes = parent == own || self.is_of_dewar(parent);
            let Some(children) = self.children_twice(parent, changes)? else {
                let (inside, others): (Vec<u32>, Vec<u32>) =
                    self.proc.pids()?.into_iter().partition(|pid| self.is_inside(*pid));
                let is_gone = |pid: &u32| self.proc.parent(*pid).is_err();
                return Ok((inside, others.iter().any(is_gone)));
            };
            for child in children {
                let counts = !self.is_of_dewar(child) && (parent != own || self.is_orphan(child));
                if counts && !found.contains(&child) {
                    found.push(child);
                    parents.push(child);
                }
            }
        }
        Ok((found, false))
    }

    /// The children of a process; of one whose children change, when two looks agree.
    fn children_twice(&self, pid: u32, changes: bool) -> Result<Option<Vec<u32>>> {
        const MOST: u32 = 4;
        let now = || none_if_gone(self.proc.children(pid));
        let mut children = now()?;
        for _ in 0..MOST {
            if !changes {
                return Ok(Some(children));
            }
            let again = now()?;
            if again == children {
                return Ok(Some(children));
            }
            children = again;
        }
        Ok(None)
    }

    /// The first process, the subreaper, or the caller: one of them is an ancestor of every process
    /// in the sandbox. With it, which child of it led there.
    fn top_of(&self, pid: u32, care: Care) -> Result<Option<(u32, u32)>> {
        let own = std::process::id();
        self.proc.ancestor(pid, care, |it| self.is_of_dewar(it) || it == own)
    }

    /// Whether a process belongs to the sandbox: it came from the command, and through its filter.
    #[must_use]
    pub fn is_inside(&self, pid: u32) -> bool {
        let Ok(Some((top, below))) = self.top_of(pid, Care::Once) else { return false };
        pid != top && (self.is_of_dewar(top) || self.is_orphan(below))
    }

    /// Whether a process is the first or the subreaper.
    fn is_of_dewar(&self, pid: u32) -> bool {
        pid == self.init || self.subreaper.as_ref().is_some_and(|(subreaper, _)| pid == *subreaper)
    }

    /// Whether a child of the caller is what the sandbox has left to it. As long as the subreaper
    /// lives, that gets whatever is left.
    fn is_orphan(&self, child: u32) -> bool {
        let lives = |pid: u32| self.proc.stat(pid).is_ok_and(|it| !matches!(it.state, 'Z' | 'X'));
        self.subreaper.as_ref().is_some_and(|(subreaper, orphans)| {
            !lives(*subreaper) && orphans.include(&self.proc, child)
        })
    }

    /// Whether a process certainly does not belong to the sandbox, nor is the caller: its ancestors
    /// were followed to the end without meeting either. Says no when in doubt.
    #[must_use]
    pub fn is_outside(&self, pid: u32) -> bool {
        matches!(self.top_of(pid, Care::Twice), Ok(None))
    }
}

/// Where `fd`, a descriptor of the caller's own, lies, as the kernel names it; a directory that
/// lies too deep for that, as a walk up from it does. What has been deleted, or replaced, has the
/// path where it lay, by which rules know it. Of memory, and of `/proc`, whose names come again, it
/// is what the kernel says.
///
/// # Errors
///
/// That of readlinkat(2): `NAMETOOLONG` for what is no directory and lies too deep, or cannot be
/// climbed from.
pub fn path_of(tree: &ProcessTree, fd: impl AsFd) -> Result<PathBuf> {
    let link = |fd: BorrowedFd<'_>| {
        let number = fd.as_raw_fd().to_string();
        let link = rustix::fs::readlinkat(&tree.own_fds, number, Vec::with_capacity(256))?;
        let link = link.into_bytes();
        let place = match link.starts_with(b"/proc/") {
            true => None,
            false => named(&link, |path| is_at(fd, path)),
        };
        Ok(place.unwrap_or_else(|| OsString::from_vec(link).into()))
    };
    match link(fd.as_fd()) {
        Err(Errno::NAMETOOLONG) => climb(fd.as_fd(), link).map_err(|_| Errno::NAMETOOLONG),
        told => told,
    }
}

/// Whether the file behind `fd` lies at `path`; no when in doubt.
fn is_at(fd: BorrowedFd<'_>, path: &Path) -> bool {
    let Ok(own) = rustix::fs::fstat(fd) else { return false };
    // What has no name any more lies nowhere.
    let there = || {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        rustix::fs::statat(CWD, path, flags)
    };
    own.st_nlink > 0 && there().is_ok_and(|it| (it.st_dev, it.st_ino) == (own.st_dev, own.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_deleted_or_replaced_has_the_place_where_it_lay() {
        let own = rustix::process::getpid().as_raw_pid().cast_unsigned();
        let proc = rustix::fs::open("/proc", OFlags::PATH, Mode::empty()).expect("/proc");
        let tree = ProcessTree::new(proc, own, None).expect("descriptors");
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let make = |name: &str| std::fs::File::create_new(at(name)).expect("a new file");
        let path = |file: &std::fs::File| path_of(&tree, file).expect("a path");

        let deleted = make("deleted");
        std::fs::remove_file(at("deleted")).expect("remove");
        assert_eq!(path(&deleted), at("deleted"));

        let replaced = make("replaced");
        std::fs::hard_link(at("replaced"), at("other")).expect("link");
        make("new");
        std::fs::rename(at("new"), at("replaced")).expect("rename");
        assert_eq!(path(&replaced), at("replaced"));

        // Names that end so: one that is there, also beside one that was deleted, and one that is
        // not.
        let marked = make("deleted (deleted)");
        assert_eq!(path(&marked), at("deleted (deleted)"));
        assert_eq!(path(&deleted), at("deleted"));
        std::fs::remove_file(at("deleted (deleted)")).expect("remove");
        assert_eq!(path(&marked), at("deleted (deleted)"));

        std::fs::create_dir(at("above")).expect("a directory");
        let below = make("above/below");
        std::fs::remove_dir_all(at("above")).expect("remove");
        assert_eq!(path(&below), at("above/below"));
    }
}
