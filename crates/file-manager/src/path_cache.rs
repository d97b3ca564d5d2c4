//! Absolute paths that were found before, where nobody in the sandbox can change what they lead to.

use super::{
    object::{FileObject, Seen},
    working_directories::WorkingDirectories,
};
use confine::file_kind;
use flask::{AccessVector, Class, FileKind, Question, Sid, perm};
use foldhash::quality::RandomState;
use inode_labels::{Label, Status};
use mediation::{call::Asker, state::MonitorState};
use proc::{ProcessTree, path_of};
use realpath::{MOST_LINKS, climbs, normal, path_from};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::{Errno, Result},
};
use std::{
    collections::{HashMap, VecDeque},
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use supervisor::Name;

/// What an absolute path was found to name, links followed.
#[derive(Clone, Debug)]
pub(crate) enum CachedPath {
    /// An object, what it is known by, where it lies, and whether the path says so without a link.
    Object { label: Arc<Label>, class: Class, status: Status, place: Arc<Path>, is_direct: bool },
    /// Nothing, and policy has no part in that.
    Missing,
}

impl CachedPath {
    /// Whether it is an object with a label and of a class of that kind.
    pub(crate) fn is(&self, kind: impl FnOnce(Sid, Class) -> bool) -> bool {
        match self {
            Self::Object { label, class, .. } => kind(label.sid, *class),
            Self::Missing => false,
        }
    }

    /// Whether it is a file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::Object { class: Class::File, .. })
    }

    /// Opens the file that `path` leads to, if it is the one that is known, and lies where it did:
    /// somebody outside may have renamed it.
    pub(crate) fn open(&self, tree: &ProcessTree, path: &Path, flags: OFlags) -> Option<OwnedFd> {
        let Self::Object { status, place, is_direct, .. } = self else { return None };
        let no_links = ResolveFlags::NO_SYMLINKS;
        let limits = if *is_direct { no_links } else { ResolveFlags::NO_MAGICLINKS };
        let fd = openat2(CWD, path, flags, Mode::empty(), limits).ok()?;
        let is_it = Status::of(fd.as_fd()).is_ok_and(|found| found == *status);
        let lies_there = || *is_direct || path_of(tree, &fd).is_ok_and(|found| found == **place);
        (is_it && lies_there()).then_some(fd)
    }

    /// Whether `asker` may use `requested` of the object's class on it. What does not exist is no
    /// question.
    pub(crate) fn allow(
        &self,
        asker: Asker<'_>,
        requested: impl FnOnce(Class) -> AccessVector,
    ) -> Result<()> {
        let Self::Object { label, class, place, .. } = self else { return Ok(()) };
        let target = FileObject { tsid: label.sid, tclass: *class, hint: &label.hint };
        target.allow(asker, requested(*class), &|| place.to_string_lossy().into_owned())
    }
}

/// Saves the walk to an object for a decision after which the program walks itself. Somebody
/// outside may change what a path leads to: then a decision that the kernel repeats is made, and
/// recorded, on the former object.
#[derive(Debug)]
pub struct PathCache {
    domains: Arc<[Sid]>,
    now: Mutex<Arc<KnownPaths>>,
    pub(crate) directories: WorkingDirectories,
}

impl PathCache {
    /// For a sandbox that holds processes of `domains`.
    pub fn new(domains: Vec<Sid>) -> Self {
        let (domains, directories) = (Arc::from(domains), WorkingDirectories::default());
        let now = Mutex::new(Arc::new(KnownPaths::new(Arc::clone(&domains))));
        Self { domains, now, directories }
    }

    /// Knows nothing any more: policy has changed. What a call finds out that began before, only
    /// such calls get to know.
    pub fn forget(&self) {
        *lock(&self.now) = Arc::new(KnownPaths::new(Arc::clone(&self.domains)));
    }

    /// What is known under the policy in force. A call takes it when it begins.
    pub fn now(&self) -> Arc<KnownPaths> {
        Arc::clone(&lock(&self.now))
    }
}

/// What was found out about paths under one policy.
#[derive(Debug)]
pub struct KnownPaths {
    domains: Arc<[Sid]>,
    /// By the very bytes of the path: to compare components takes several times as long.
    known: Mutex<HashMap<OsString, Arc<CachedPath>, RandomState>>,
    /// Whether directories with a label keep their entries.
    keeping: Mutex<HashMap<Sid, bool>>,
    /// Whether domains let be what has a name with such a label.
    kept_names: Mutex<HashMap<Sid, bool>>,
    /// Directories last asked about: whether they and all above them keep their entries.
    fixed: Mutex<HashMap<PathBuf, bool>>,
    /// Directories last looked for nothing in: whether no link leads there, besides.
    plain: Mutex<HashMap<PathBuf, bool>>,
}

impl KnownPaths {
    /// Beyond, it starts anew: about 4 MiB.
    const MOST: usize = 16_384;
    /// Directories, likewise: at most as much again.
    const MOST_DIRECTORIES: usize = 1024;
    /// Bytes of a path, which the program chooses.
    const LONGEST: usize = 256;

    fn new(domains: Arc<[Sid]>) -> Self {
        let (known, keeping, kept_names, fixed, plain) = Default::default();
        Self { domains, known, keeping, kept_names, fixed, plain }
    }

    pub(crate) fn get(&self, name: Name<'_>) -> Option<Arc<CachedPath>> {
        let path = key(name)?;
        lock(&self.known).get(path.as_os_str()).cloned()
    }

    /// Remembers that `name` led to `fd`, without a magic link, if that cannot change.
    pub(crate) fn found(
        &self,
        state: &MonitorState,
        name: Name<'_>,
        fd: &OwnedFd,
        seen: &Seen,
    ) -> Result<()> {
        let Some(path) = key(name) else { return Ok(()) };
        if !self.is_fixed(state, &normal(path)) {
            return Ok(());
        }
        let place = seen.place(state, fd)?;
        // A file that was met by another name, and renamed since, has to be asked about by both.
        let is_renamed = state.labels.of_path(place, file_kind(seen.status.kind)) != seen.label.sid;
        // Of a name that it leaves again, its words do not say whether that can be led elsewhere.
        let is_straight = || !climbs(path) || self.links_of_fixed_way(state, path) == Some(0);
        let is_direct = normal(path) == place && is_straight();
        if !is_renamed && (is_direct || self.is_way_fixed(state, path)) {
            let label = Arc::clone(&seen.label);
            let (class, status, place) = (seen.class, seen.status, place.into());
            self.insert(path, CachedPath::Object { label, class, status, place, is_direct });
        }
        Ok(())
    }

    /// Remembers that `name` leads nowhere, if that cannot change.
    pub(crate) fn missing(&self, state: &MonitorState, name: Name<'_>) {
        let Some(path) = key(name) else { return };
        let is_fixed = || self.is_fixed(state, &normal(path)) && self.is_way_fixed(state, path);
        if self.is_plainly_missing(state, name) || is_fixed() {
            self.insert(path, CachedPath::Missing);
        }
    }

    /// Whether `name` leads nowhere without a link, and that cannot change: for everybody, then.
    pub(crate) fn is_plainly_missing(&self, state: &MonitorState, name: Name<'_>) -> bool {
        let Some(path) = key(name).filter(|path| normal(path).as_os_str() == path.as_os_str())
        else {
            return false;
        };
        path.parent().is_some_and(|dir| self.is_plain(state, dir))
            && rustix::fs::readlink(path, Vec::new()).err() == Some(Errno::NOENT)
    }

    fn is_plain(&self, state: &MonitorState, dir: &Path) -> bool {
        if let Some(&known) = lock(&self.plain).get(dir) {
            return known;
        }
        let is_plain = !may_differ(dir)
            && self.is_fixed(state, &dir.join("entry"))
            && self.links_of_fixed_way(state, dir) == Some(0);
        remember(&self.plain, dir, is_plain);
        is_plain
    }

    /// Whether the directory of `path`, as it is written, is the same whoever looks and when: no
    /// domain may change an entry on the way.
    pub fn is_fixed_way(&self, state: &MonitorState, path: &Path) -> bool {
        let above = path.parent().filter(|above| above.is_absolute() && !may_differ(above));
        above.is_some_and(|above| self.is_way_fixed(state, above))
    }

    /// Whether no domain may change an entry of a directory above `path`. Processes change what
    /// `/proc` holds.
    fn is_fixed(&self, state: &MonitorState, path: &Path) -> bool {
        if !path.is_absolute() || path.starts_with("/proc") {
            return false;
        }
        let Some(dir) = path.parent() else { return true };
        self.keeps_name(state, path) && self.is_fixed_dir(state, dir)
    }

    /// Whether no domain may change an entry of a directory, nor of one above, but for names in it
    /// that rules reserve.
    fn is_fixed_dir(&self, state: &MonitorState, dir: &Path) -> bool {
        if let Some(&known) = lock(&self.fixed).get(dir) {
            return known;
        }
        let keeps = |dir: &Path| {
            let label = state.labels.of_path(dir, FileKind::Dir);
            if let Some(&known) = lock(&self.keeping).get(&label) {
                return known;
            }
            // Not under the lock: a daemon may take its time to answer.
            let keeps = self.keeps_entries(state, label);
            lock(&self.keeping).insert(label, keeps);
            keeps
        };
        let is_fixed = dir.ancestors().all(|it| keeps(it) && self.keeps_name(state, it));
        remember(&self.fixed, dir, is_fixed);
        is_fixed
    }

    /// Whether no domain may change an entry of any directory that the walk along `path` comes
    /// through, those of links included.
    fn is_way_fixed(&self, state: &MonitorState, path: &Path) -> bool {
        self.links_of_fixed_way(state, path).is_some()
    }

    /// The links on such a way; `None` if some domain may change an entry on it.
    fn links_of_fixed_way(&self, state: &MonitorState, path: &Path) -> Option<usize> {
        let mut at = PathBuf::from("/");
        let mut rest: VecDeque<OsString> = path.iter().map(OsStr::to_owned).collect();
        let mut links = 0;
        while let Some(part) = rest.pop_front() {
            match part.as_bytes() {
                b"." => {}
                b"/" => at = PathBuf::from("/"),
                b".." => drop(at.pop()),
                _ => {
                    let next = at.join(&part);
                    if !self.is_fixed(state, &next) {
                        return None;
                    }
                    match rustix::fs::readlink(&next, Vec::new()) {
                        Ok(_) if links == MOST_LINKS => return None,
                        // It leads no domain to what another may not touch: each time is decided.
                        Ok(_) if self.domains.len() > 1 && next.starts_with(&state.workspace) => {
                            return None;
                        }
                        Ok(target) => {
                            links += 1;
                            let target = path_from(target.as_bytes());
                            let parts: Vec<OsString> = target.iter().map(OsStr::to_owned).collect();
                            parts.into_iter().rev().for_each(|part| rest.push_front(part));
                        }
                        Err(Errno::INVAL) => at = next,
                        // Nothing is there, nor below.
                        Err(Errno::NOENT | Errno::NOTDIR) => return Some(links),
                        Err(_) => return None,
                    }
                }
            }
        }
        Some(links)
    }

    /// Whether no domain may make or remove what is at `path`, which rules may reserve for it in a
    /// directory that it may not change.
    fn keeps_name(&self, state: &MonitorState, path: &Path) -> bool {
        let label = state.labels.of_path(path, FileKind::Symlink);
        let around = path.parent().map(|above| state.labels.of_path(above, FileKind::Dir));
        if around.is_none_or(|around| around == label) {
            return true;
        }
        if let Some(&known) = lock(&self.kept_names).get(&label) {
            return known;
        }
        let changes = perm::file::CREATE | perm::file::UNLINK;
        let keeps = self.keeps(state, (label, Class::LnkFile), changes);
        lock(&self.kept_names).insert(label, keeps);
        keeps
    }

    fn keeps_entries(&self, state: &MonitorState, label: Sid) -> bool {
        self.keeps(state, (label, Class::Dir), perm::dir::ADD_NAME | perm::dir::REMOVE_NAME)
    }

    /// Whether no domain has any of `changes`. Asks the security server itself: no program wants to
    /// know, so it is no query of an object manager.
    fn keeps(
        &self,
        state: &MonitorState,
        (tsid, tclass): (Sid, Class),
        changes: AccessVector,
    ) -> bool {
        self.domains.iter().all(|&ssid| {
            let question = Question { ssid, tsid, tclass };
            let answer = state.server.compute_av(question);
            answer.is_ok_and(|av| !av.permissive && (av.allowed & changes).is_empty())
        })
    }

    fn insert(&self, path: &Path, known: CachedPath) {
        let mut all = lock(&self.known);
        if all.len() >= Self::MOST {
            all.clear();
        }
        all.insert(path.as_os_str().to_owned(), Arc::new(known));
    }
}

/// Whether a path may lead through the links of `/proc` or `/dev`, which take each process
/// elsewhere. There are none in `/dev/shm` but what somebody has made.
pub(super) fn may_differ(path: &Path) -> bool {
    let mut names = path.components().skip(1).map(|part| part.as_os_str().as_bytes());
    match names.next() {
        Some(b"dev") => names.next() != Some(b"shm"),
        top => top == Some(b"proc"),
    }
}

/// What leads to the same object from everywhere.
fn key(name: Name<'_>) -> Option<&Path> {
    let is_short = name.path.as_os_str().len() <= KnownPaths::LONGEST;
    (name.follow && is_short && name.path.is_absolute()).then_some(name.path)
}

/// Keeps what was found of a directory.
fn remember(directories: &Mutex<HashMap<PathBuf, bool>>, dir: &Path, is: bool) {
    let mut directories = lock(directories);
    if directories.len() >= KnownPaths::MOST_DIRECTORIES {
        directories.clear();
    }
    directories.insert(dir.to_owned(), is);
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_finds_out_that_began_before_a_change_counts_for_nobody_later() {
        let paths = PathCache::new(Vec::new());
        let path = Path::new("/none");
        let name = Name { dirfd: libc::AT_FDCWD, path, follow: true };
        let stuck = paths.now();
        paths.forget();
        stuck.insert(path, CachedPath::Missing);
        assert!(stuck.get(name).is_some() && paths.now().get(name).is_none());
        paths.now().insert(path, CachedPath::Missing);
        assert!(paths.now().get(name).is_some());
    }

    #[test]
    fn only_paths_through_the_kernel_s_own_links_differ_between_processes() {
        for (path, differs) in [
            ("/proc/self/exe", true),
            ("//proc/./self", true),
            ("/dev/stdin", true),
            ("/dev/fd/3", true),
            ("/dev", true),
            ("/dev/shm/workspace/file", false),
            ("/devices", false),
            ("/usr/include/stdio.h", false),
            ("/", false),
        ] {
            assert_eq!(may_differ(Path::new(path)), differs, "{path}");
        }
    }
}
