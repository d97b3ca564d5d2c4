//! Absolute paths that were found before, where nobody in the sandbox can change what they lead to.

use super::object::{Seen, Target};
use crate::{
    caller::{Caller, path_of},
    gate::{Asker, Gate},
    label::{Label, Status, normal},
    resolve::Name,
};
use flask::{AccessVector, Class, FileKind, Question, Sid, perm};
use rustix::{
    fs::{AtFlags, CWD},
    io::Result,
};
use std::{
    collections::HashMap,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What an absolute path was found to name, links followed.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// An object, and where it lies.
    Object { label: Arc<Label>, class: Class, place: Arc<Path> },
    /// Nothing, and policy has no part in that.
    Missing,
}

impl Known {
    /// Whether `asker` may use `requested` of the object's class on it. What does not exist is no question.
    pub(crate) fn allow(
        &self,
        asker: Asker<'_>,
        requested: impl FnOnce(Class) -> AccessVector,
    ) -> Result<()> {
        let Self::Object { label, class, place } = self else { return Ok(()) };
        let target = Target { tsid: label.sid, tclass: *class, hint: &label.hint };
        target.allow(asker, requested(*class), &|| place.to_string_lossy().into_owned())
    }
}

/// Threads whose working directories are remembered.
const DIRECTORIES: usize = 32;

/// A thread's number and its working directory.
type Directories = [Option<(u32, Arc<OwnedFd>)>; DIRECTORIES];

/// Saves the walk to an object for a decision after which the program walks itself. Somebody outside may change what a
/// path leads to: then a decision that the kernel repeats is made, and recorded, on the former object.
#[derive(Debug)]
pub(crate) struct KnownPaths {
    domains: Vec<Sid>,
    known: Mutex<HashMap<PathBuf, Known>>,
    /// Whether directories with a label keep their entries.
    fixed: Mutex<HashMap<Sid, bool>>,
    /// Working directories of threads at a former call, by the threads' numbers.
    directories: Mutex<Directories>,
}

impl KnownPaths {
    /// Beyond, it starts anew: about 4 MiB.
    const MOST: usize = 16_384;
    /// Bytes of a path, which the program chooses.
    const LONGEST: usize = 256;

    /// For a sandbox that holds processes of `domains`.
    pub(crate) fn new(domains: Vec<Sid>) -> Self {
        let (known, fixed, directories) = Default::default();
        Self { domains, known, fixed, directories }
    }

    /// Knows nothing any more: policy has changed.
    pub(crate) fn forget(&self) {
        lock(&self.known).clear();
        lock(&self.fixed).clear();
    }

    pub(crate) fn get(&self, name: Name<'_>) -> Option<Known> {
        let path = key(name)?;
        lock(&self.known).get(path).cloned()
    }

    /// Remembers that `name` led to `fd`, without a magic link, if that cannot change.
    pub(crate) fn found(
        &self,
        gate: &Gate,
        name: Name<'_>,
        fd: &OwnedFd,
        seen: &Seen,
    ) -> Result<()> {
        let Some(path) = key(name) else { return Ok(()) };
        if !self.is_fixed(gate, &normal(path)) {
            return Ok(());
        }
        let place = path_of(&gate.view, fd)?;
        if self.is_fixed(gate, &place) {
            let label = Arc::clone(&seen.label);
            self.insert(path, Known::Object { label, class: seen.class, place: place.into() });
        }
        Ok(())
    }

    /// Remembers that `name` leads nowhere, if that cannot change.
    pub(crate) fn missing(&self, gate: &Gate, name: Name<'_>) {
        let Some(path) = key(name) else { return };
        if self.is_fixed(gate, &normal(path)) {
            self.insert(path, Known::Missing);
        }
    }

    /// What `name` leads to by a single look at it. Another thread may just have changed the caller's working directory or
    /// have its number by now, and a magic link leads to where it leads the monitor: it is good for a grant after which
    /// the program walks itself, and for nothing else.
    pub(crate) fn glance(&self, caller: Caller<'_>, name: Name<'_>) -> Option<Status> {
        let links = if name.follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let flags = links | AtFlags::NO_AUTOMOUNT;
        if name.path.is_absolute() {
            // These hold, or are, links that lead each process elsewhere.
            let differs = ["/proc", "/dev"].iter().any(|top| name.path.starts_with(top));
            return if differs { None } else { Status::of_path(CWD, name.path, flags).ok() };
        }
        let tid = caller.call.tid;
        let remembered = lock(&self.directories)[tid as usize % DIRECTORIES].clone();
        let (_, cwd) = remembered.filter(|(of, _)| name.dirfd == libc::AT_FDCWD && *of == tid)?;
        // An empty path leads nowhere, as no flag says otherwise.
        Status::of_path(cwd.as_fd(), name.path, flags).ok()
    }

    /// Remembers the caller's working directory, if this call has looked it up.
    pub(crate) fn remember_directory(&self, caller: Caller<'_>) {
        let Some(Ok(cwd)) = caller.cwd.get().map(OwnedFd::try_clone) else { return };
        let tid = caller.call.tid;
        lock(&self.directories)[tid as usize % DIRECTORIES] = Some((tid, Arc::new(cwd)));
    }

    /// Knows no working directory any more: somebody is about to change one.
    pub(crate) fn forget_directories(&self) {
        *lock(&self.directories) = Directories::default();
    }

    /// Whether no domain may change an entry of a directory above `path`. Processes change what `/proc` holds.
    fn is_fixed(&self, gate: &Gate, path: &Path) -> bool {
        let keeps = |dir: &Path| {
            let label = gate.labels.of_path(dir, FileKind::Dir);
            *lock(&self.fixed).entry(label).or_insert_with(|| self.keeps_entries(gate, label))
        };
        path.is_absolute() && !path.starts_with("/proc") && path.ancestors().skip(1).all(keeps)
    }

    /// Asks the security server itself: no program wants to know, so it is no query of an object manager.
    fn keeps_entries(&self, gate: &Gate, label: Sid) -> bool {
        let changes = perm::dir::ADD_NAME | perm::dir::REMOVE_NAME;
        self.domains.iter().all(|&ssid| {
            let question = Question { ssid, tsid: label, tclass: Class::Dir };
            let answer = gate.server.compute_av(question);
            answer.is_ok_and(|av| !av.permissive && (av.allowed & changes).is_empty())
        })
    }

    fn insert(&self, path: &Path, known: Known) {
        let mut all = lock(&self.known);
        if all.len() >= Self::MOST {
            all.clear();
        }
        all.insert(path.to_owned(), known);
    }
}

/// What leads to the same object from everywhere.
fn key(name: Name<'_>) -> Option<&Path> {
    let is_short = name.path.as_os_str().len() <= KnownPaths::LONGEST;
    (name.follow && is_short && name.path.is_absolute()).then_some(name.path)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
