//! From a path of the program to the object that it names, in the program's own view.
//!
//! [`resolve`] lets the kernel resolve it, for calls that the program then makes itself.
//!
//! [`walk`] goes component by component, for calls that the monitor makes on the program's behalf.
//! `/proc/self` is the program's, and magic links are followed only where the program may look.
//! What comes back is a descriptor, so nothing can be swapped between decision and use.

use crate::{caller::Caller, found::WalkedPath};
use proc::{Identity, path_of};
use realpath::{MOST_LINKS, path_from};
use rustix::{
    fs::{FileType, Mode, OFlags, ResolveFlags},
    io::{Errno, Result},
};
use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// What a path of the program names.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// Where a relative path begins: a descriptor of the program, or `AT_FDCWD`.
    pub dirfd: i32,
    /// The path.
    pub path: &'a Path,
    /// A symbolic link at the end is followed.
    pub follow: bool,
}

/// The object that `name` names right now, as the kernel finds it; `LOOP` where a link leads there
/// that has to be looked at.
pub fn resolve(caller: Caller<'_>, name: Name<'_>) -> Result<OwnedFd> {
    let nofollow = if name.follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let limits = match caller.links {
        Some(_) => ResolveFlags::NO_SYMLINKS,
        None => ResolveFlags::NO_MAGICLINKS,
    };
    let open = |base: BorrowedFd<'_>| {
        rustix::fs::openat2(base, name.path, HANDLE | nofollow, Mode::empty(), limits)
    };
    if name.path.is_absolute() {
        open(rustix::fs::CWD)
    } else {
        open(caller.base(name.dirfd)?.as_fd())
    }
}

/// As [`resolve`], with the limits on the way that the program has set.
pub fn resolve_within(caller: Caller<'_>, name: Name<'_>, limits: ResolveFlags) -> Result<OwnedFd> {
    let nofollow = if name.follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let limits = limits | ResolveFlags::NO_MAGICLINKS;
    let open = |base: BorrowedFd<'_>| {
        rustix::fs::openat2(base, name.path, HANDLE | nofollow, Mode::empty(), limits)
    };
    if let Some(links) = caller.links.filter(|_| !limits.contains(ResolveFlags::NO_SYMLINKS)) {
        let plain = resolve_within(caller, name, limits | ResolveFlags::NO_SYMLINKS);
        if !matches!(plain, Err(Errno::LOOP)) {
            return plain;
        }
        links.follow_unknown();
    }
    // Which of these paths may not be absolute, the kernel says before it looks at the directory.
    if name.path.is_absolute() && !limits.contains(ResolveFlags::IN_ROOT) {
        open(rustix::fs::CWD)
    } else {
        open(caller.base(name.dirfd)?.as_fd())
    }
}

/// As [`walk`], through no magic link of `/proc`: `LOOP` at one.
pub fn walk_no_magiclinks(caller: Caller<'_>, name: Name<'_>) -> Result<WalkedPath> {
    walk_with(caller, name, &mut false, Rules { no_magiclinks: true, creates: false })
}

/// What `name` names, for a call that the program then makes itself; and whether that is so for it
/// alone. To the monitor magic links lead elsewhere, and there is no `/proc/self`: where the kernel
/// stops at one of them, the walk is made as the program's.
pub fn resolve_for_caller(caller: Caller<'_>, name: Name<'_>) -> (Result<WalkedPath>, bool) {
    match resolve(caller, name) {
        Err(Errno::LOOP | Errno::NOENT) => walk_for_caller(caller, name),
        Err(error) => (Err(error), false),
        Ok(object) => (Ok(WalkedPath { object: Some(object), ..WalkedPath::default() }), false),
    }
}

/// As [`walk`], and whether that is so for this process alone.
pub fn walk_for_caller(caller: Caller<'_>, name: Name<'_>) -> (Result<WalkedPath>, bool) {
    let mut is_own = false;
    (walk_with(caller, name, &mut is_own, Rules::default()), is_own)
}

struct Walk<'a> {
    caller: Caller<'a>,
    at: OwnedFd,
    todo: VecDeque<OsString>,
    links: usize,
    /// Components below the root of a proc file system, once inside one.
    in_proc: Option<Vec<OsString>>,
    rules: Rules,
    /// It has met something that leads each process elsewhere.
    is_own: &'a mut bool,
}

/// Walks `name` to its end. Symbolic links on the way are followed as the kernel does.
pub fn walk(caller: Caller<'_>, name: Name<'_>) -> Result<WalkedPath> {
    walk_with(caller, name, &mut false, Rules::default())
}

/// As [`walk_for_caller`], to a file that is made if it is not there, and needs no slash behind it.
pub fn walk_to_create(caller: Caller<'_>, name: Name<'_>) -> (Result<WalkedPath>, bool) {
    let mut is_own = false;
    (walk_with(caller, name, &mut is_own, Rules { no_magiclinks: false, creates: true }), is_own)
}

/// What a walk heeds.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    no_magiclinks: bool,
    creates: bool,
}

fn walk_with(
    caller: Caller<'_>,
    name: Name<'_>,
    is_own: &mut bool,
    rules: Rules,
) -> Result<WalkedPath> {
    if name.path.as_os_str().is_empty() {
        return Err(Errno::NOENT);
    }
    let at = if name.path.is_absolute() { root()? } else { caller.base(name.dirfd)? };
    let is_cwd = name.dirfd == libc::AT_FDCWD || name.path.is_absolute();
    if !is_cwd && !FileType::from_raw_mode(rustix::fs::fstat(&at)?.st_mode).is_dir() {
        return Err(Errno::NOTDIR);
    }
    let in_proc = if name.path.is_absolute() { None } else { trail_of(caller, at.as_fd())? };
    let mut walk = Walk { caller, at, todo: VecDeque::new(), links: 0, in_proc, rules, is_own };
    walk.push(name.path);
    let mut found = walk.run(name.follow)?;
    if let Some(object) = &found.object
        && let Some(trail) = trail_of(caller, object.as_fd())?
    {
        // However the walk came here, by a link to a descriptor or a directory of its own: it is
        // this process's file.
        let pid = trail.first().and_then(|pid| pid.to_str()?.parse().ok());
        found.process = unless_own(caller, pid)?;
    }
    Ok(found)
}

fn root() -> Result<OwnedFd> {
    rustix::fs::open("/", HANDLE | OFlags::DIRECTORY, Mode::empty())
}

/// The components below the proc file system that a walk starts in, if it does.
fn trail_of(caller: Caller<'_>, base: BorrowedFd<'_>) -> Result<Option<Vec<OsString>>> {
    if !caller.tree.is_proc(base)? {
        return Ok(None);
    }
    let path = path_of(caller.tree, base)?;
    // Mounted anywhere else, it could not be told whose files these are.
    let trail = path.strip_prefix("/proc").map_err(|_| Errno::ACCESS)?;
    Ok(Some(trail.iter().map(OsStr::to_owned).collect()))
}

impl Walk<'_> {
    /// Puts the components of a path, or of a link's target, before what is left to do.
    fn push(&mut self, path: &Path) {
        let bytes = path.as_os_str().as_bytes();
        let parts: Vec<OsString> = bytes
            .split(|byte| *byte == b'/')
            .map(|part| OsStr::from_bytes(part).to_owned())
            .collect();
        // An empty last part keeps a trailing slash in sight.
        for part in parts.into_iter().rev() {
            self.todo.push_front(part);
        }
    }

    fn run(mut self, follow: bool) -> Result<WalkedPath> {
        while let Some(part) = self.todo.pop_front() {
            let last = self.todo.iter().all(|rest| rest.is_empty());
            let slash = last && !self.todo.is_empty();
            match part.as_bytes() {
                b"" => {}
                b"." => self.search()?,
                b".." => self.up()?,
                _ => {
                    if let Some(found) = self.step(&part, last, slash, follow)? {
                        return Ok(found);
                    }
                }
            }
        }
        self.end_at_directory()
    }

    /// Takes one named component; the result when it was the last.
    fn step(
        &mut self,
        part: &OsStr,
        last: bool,
        slash: bool,
        follow: bool,
    ) -> Result<Option<WalkedPath>> {
        if slash && self.rules.creates {
            self.search()?;
            return Err(Errno::ISDIR);
        }
        if let Some(target) = self.own_process(part)? {
            *self.is_own = true;
            self.follow_link(path_from(target.as_bytes()))?;
            return Ok(None);
        }
        let opened = rustix::fs::openat(&self.at, part, HANDLE | OFlags::NOFOLLOW, Mode::empty());
        let fd = match opened {
            Err(Errno::NOENT) if last => return self.end(part, None, slash).map(Some),
            opened => opened?,
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
        if kind == FileType::Symlink && (!last || follow || slash) {
            return self.symlink(part, &fd, last, slash);
        }
        if last {
            return self.end(part, Some(fd), slash).map(Some);
        }
        if kind != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        self.enter(part, fd)?;
        Ok(None)
    }

    fn symlink(
        &mut self,
        part: &OsStr,
        fd: &OwnedFd,
        last: bool,
        slash: bool,
    ) -> Result<Option<WalkedPath>> {
        if self.in_proc.as_ref().is_some_and(|trail| trail.first().is_some_and(|pid| is_pid(pid))) {
            if self.rules.no_magiclinks {
                return Err(Errno::LOOP);
            }
            let process = self.foreign_process()?;
            *self.is_own = true;
            let target = self.magic(part)?;
            if last {
                let is_own = process.is_none() && self.is_in_descriptors();
                let descriptor = part.to_str().filter(|_| is_own).and_then(|n| n.parse().ok());
                let (object, wants_dir) = (Some(target), slash);
                return Ok(Some(WalkedPath {
                    entry: None,
                    object,
                    process,
                    wants_dir,
                    descriptor,
                }));
            }
            // Beyond the link, files belong to whom they belong; the link itself was the process's.
            if process.is_some() {
                return Err(Errno::ACCESS);
            }
            self.in_proc = trail_of(self.caller, target.as_fd())?;
            self.at = target;
            return Ok(None);
        }
        let target = rustix::fs::readlinkat(fd, c"", Vec::new())?;
        if let Some(links) = self.caller.links {
            links.follow(&self.at, part)?;
        }
        self.follow_link(path_from(target.as_bytes()))?;
        Ok(None)
    }

    fn follow_link(&mut self, target: &Path) -> Result<()> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP);
        }
        if target.is_absolute() {
            self.at = root()?;
            self.in_proc = None;
        }
        self.push(target);
        Ok(())
    }

    /// What `self` and `thread-self` mean to the caller, at the root of a proc file system.
    fn own_process(&self, part: &OsStr) -> Result<Option<OsString>> {
        if self.in_proc.as_ref().is_none_or(|trail| !trail.is_empty()) {
            return Ok(None);
        }
        let &Identity { inner_pid, inner_tid, .. } = self.caller.identity()?;
        Ok(match part.as_bytes() {
            b"self" => Some(inner_pid.to_string().into()),
            b"thread-self" => Some(format!("{inner_pid}/task/{inner_tid}").into()),
            _ => None,
        })
    }

    /// The object behind a magic link of `/proc/PID/…`, in the monitor's own proc file system.
    fn magic(&self, part: &OsStr) -> Result<OwnedFd> {
        let trail = self.in_proc.as_deref().unwrap_or_default();
        let number = |at: usize| trail.get(at)?.to_str()?.parse().ok();
        let (tree, pid) = (self.caller.tree, number(0).ok_or(Errno::NOENT)?);
        let outer = tree.outer_pid(pid, self.caller.identity()?)?;
        let (mut path, rest) = match number(2).filter(|_| trail[1] == "task") {
            Some(tid) => (format!("{outer}/task/{}", tree.outer_tid(outer, tid)?), &trail[3..]),
            None => (outer.to_string(), &trail[1..]),
        };
        for component in rest.iter().map(OsString::as_os_str).chain([part]) {
            path.push('/');
            path.push_str(component.to_str().ok_or(Errno::NOENT)?);
        }
        rustix::fs::openat(&self.caller.tree.proc, path, HANDLE, Mode::empty())
    }

    /// Whether the walk is in the directory of the descriptors of a process.
    fn is_in_descriptors(&self) -> bool {
        self.in_proc.as_ref().and_then(|trail| trail.last()).is_some_and(|name| name == "fd")
    }

    fn enter(&mut self, part: &OsStr, fd: OwnedFd) -> Result<()> {
        if let Some(trail) = &mut self.in_proc {
            trail.push(part.to_owned());
        } else if self.caller.tree.is_proc_root(fd.as_fd())? {
            self.in_proc = Some(Vec::new());
        }
        self.at = fd;
        Ok(())
    }

    /// Whoever may not search a directory finds not even itself in it.
    fn search(&self) -> Result<()> {
        rustix::fs::openat(&self.at, c".", HANDLE, Mode::empty()).map(drop)
    }

    fn up(&mut self) -> Result<()> {
        self.at = rustix::fs::openat(&self.at, c"..", HANDLE | OFlags::DIRECTORY, Mode::empty())?;
        if let Some(trail) = &mut self.in_proc
            && trail.pop().is_none()
        {
            self.in_proc = None;
        }
        Ok(())
    }

    /// The process whose directory the walk is in, unless it is the caller's.
    fn foreign_process(&self) -> Result<Option<u32>> {
        let first = self.in_proc.as_ref().and_then(|trail| trail.first());
        unless_own(self.caller, first.and_then(|pid| pid.to_str()?.parse().ok()))
    }

    fn end(
        &mut self,
        part: &OsStr,
        object: Option<OwnedFd>,
        wants_dir: bool,
    ) -> Result<WalkedPath> {
        let mut process = self.foreign_process()?;
        if let (Some([]), Some(pid)) =
            (self.in_proc.as_deref(), part.to_str().and_then(|p| p.parse().ok()))
        {
            process = unless_own(self.caller, Some(pid))?;
        }
        let parent = self.at.try_clone().map_err(|_| Errno::MFILE)?;
        let entry = Some((parent, part.to_owned()));
        Ok(WalkedPath { entry, object, process, wants_dir, descriptor: None })
    }

    fn end_at_directory(self) -> Result<WalkedPath> {
        let process = self.foreign_process()?;
        Ok(WalkedPath { object: Some(self.at), process, wants_dir: true, ..WalkedPath::default() })
    }
}

fn unless_own(caller: Caller<'_>, pid: Option<u32>) -> Result<Option<u32>> {
    let Some(pid) = pid else { return Ok(None) };
    Ok((pid != caller.identity()?.inner_pid).then_some(pid))
}

fn is_pid(name: &OsStr) -> bool {
    !name.is_empty() && name.as_bytes().iter().all(u8::is_ascii_digit)
}
