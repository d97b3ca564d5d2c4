//! Labels of files: by rule when an inode is first met, afterwards with the inode.

use crate::repository::known_as;
use arc_swap::ArcSwap;
use avc::Hint;
use confine::file_kind;
use flask::{FileKind, InitialSid, Sid};
use foldhash::quality::RandomState;
use labelling::PathRules;
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags};
use std::{
    collections::HashMap,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// A labelled object, and where the last answer about it lies.
#[derive(Debug)]
pub struct Label {
    /// The label.
    pub sid: Sid,
    /// Where the last answer about it lies.
    pub hint: Hint,
    /// What it was before the last change of the labelling rules.
    before: Sid,
    /// The labelling rules in force when it was given.
    rules: Arc<PathRules>,
}

impl Label {
    /// What it was before the last change of the labelling rules.
    pub fn before(&self) -> Sid {
        self.before
    }

    /// The same object, as a subject sees it to whom it is labelled `sid`.
    pub fn relabelled(&self, sid: Sid) -> Self {
        Self { sid, hint: Hint::default(), before: self.before, rules: Arc::clone(&self.rules) }
    }
}

/// An inode for as long as it lives: its number is used again, its birth time is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Inode {
    device: (u32, u32),
    number: u64,
    birth: (i64, u32),
}

/// What the kernel says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// File, directory, and so on.
    pub kind: FileType,
    /// Major and minor number of the device that it is on.
    pub device: (u32, u32),
    /// Its inode number there.
    pub number: u64,
    birth: Option<(i64, u32)>,
}

impl Status {
    /// Asks about the file behind `fd`, which may be an `O_PATH` descriptor.
    pub fn of(fd: BorrowedFd<'_>) -> rustix::io::Result<Self> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        Ok(Self::from_statx(&rustix::fs::statx(fd, c"", flags, Self::MASK)?))
    }

    /// Asks about what `path` leads to from `base`.
    pub fn of_path(base: BorrowedFd<'_>, path: &Path, flags: AtFlags) -> rustix::io::Result<Self> {
        let flags = flags | AtFlags::STATX_DONT_SYNC;
        Ok(Self::from_statx(&rustix::fs::statx(base, path, flags, Self::MASK)?))
    }

    /// Asks about the file at `name`, links followed: also one of the links of `/proc`.
    pub fn at(directory: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<Self> {
        let flags = AtFlags::STATX_DONT_SYNC;
        Ok(Self::from_statx(&rustix::fs::statx(directory, name, flags, Self::MASK)?))
    }

    /// What [`Status::from_statx`] needs.
    pub const MASK: StatxFlags = StatxFlags::TYPE.union(StatxFlags::INO).union(StatxFlags::BTIME);

    /// What statx(2) has answered to [`Status::MASK`].
    pub fn from_statx(statx: &Statx) -> Self {
        let born = statx.stx_mask & StatxFlags::BTIME.bits() != 0;
        Self {
            kind: FileType::from_raw_mode(statx.stx_mode.into()),
            device: (statx.stx_dev_major, statx.stx_dev_minor),
            number: statx.stx_ino,
            birth: born.then_some((statx.stx_btime.tv_sec, statx.stx_btime.tv_nsec)),
        }
    }

    /// Whether it was certainly made before `time`, in seconds and nanoseconds; no where the file
    /// system does not tell.
    pub fn is_older_than(&self, time: (i64, i64)) -> bool {
        self.birth.is_some_and(|(seconds, nanos)| (seconds, i64::from(nanos)) < time)
    }

    fn inode(&self) -> Option<Inode> {
        self.birth.map(|birth| Inode { device: self.device, number: self.number, birth })
    }
}

/// The labelling rules in force, and those before the last change. Older ones live as long as
/// labels that they gave.
#[derive(Debug)]
struct Rules {
    before: Arc<PathRules>,
    now: Arc<PathRules>,
}

/// The label of every file seen. Bounded: beyond 100,000 inodes it starts anew from the
/// rules.
///
/// When the rules change, a file keeps its label unless old and new rules differ for the place
/// where it lies.
#[derive(Debug)]
pub struct Labels {
    rules: ArcSwap<Rules>,
    seen: Mutex<HashMap<Inode, Arc<Label>, RandomState>>,
    /// Files with several names, and the one that a change of rules has labelled them by.
    pinned: Mutex<HashMap<Inode, (Arc<Label>, PathBuf)>>,
    has_forgotten: AtomicBool,
    private: Private,
}

/// Directories that are the sandbox's own. What was opened outside before, in those that they
/// replace, has paths in them as well.
#[derive(Clone, Debug, Default)]
pub struct Private {
    /// Each with the device that it is.
    pub directories: Vec<(PathBuf, (u32, u32))>,
    /// What of outside is put back in them.
    pub keep: Vec<PathBuf>,
}

impl Private {
    /// Whether a file is none of the sandbox's, though it has a path there.
    fn replaces(&self, path: &Path, device: (u32, u32)) -> bool {
        let of_outside =
            |(directory, own): &(PathBuf, _)| *own != device && path.starts_with(directory);
        self.directories.iter().any(of_outside)
            && !self.keep.iter().any(|kept| path.starts_with(kept))
    }
}

impl Labels {
    /// About 8 MiB of labels.
    const MOST: usize = 100_000;

    /// No file is known yet; these rules hold.
    pub fn new(rules: PathRules) -> Self {
        let now = Arc::new(rules);
        let rules = ArcSwap::from_pointee(Rules { before: Arc::clone(&now), now });
        let has_forgotten = AtomicBool::new(false);
        let private = Private::default();
        Self { rules, seen: Mutex::default(), pinned: Mutex::default(), has_forgotten, private }
    }

    /// The same, in a view with directories of its own.
    pub fn in_view(self, private: Private) -> Self {
        Self { private, ..self }
    }

    /// From now on these rules hold.
    pub fn change(&self, rules: PathRules) {
        let before = self.newest();
        self.rules.store(Arc::new(Rules { before, now: Arc::new(rules) }));
        let freed = |(_, (_, path)): &(Inode, (Arc<Label>, PathBuf))| {
            self.has_changed(path, FileKind::File)
        };
        let pinned = std::mem::take(&mut *self.pinned());
        let (freed, kept): (Vec<_>, Vec<_>) = pinned.into_iter().partition(freed);
        self.pinned().extend(kept);
        self.lock().retain(|inode, _| freed.iter().all(|(other, _)| other != inode));
    }

    /// The label of a file: its inode's, or, for an inode not met before, that of its path, which
    /// `path` finds out.
    pub fn of_file(
        &self,
        status: &Status,
        path: impl FnOnce() -> rustix::io::Result<PathBuf>,
    ) -> rustix::io::Result<Arc<Label>> {
        let inode = status.inode();
        let known = inode.and_then(|inode| self.known(&inode));
        if let Some(label) = &known
            && Arc::ptr_eq(&label.rules, &self.rules.load().now)
        {
            return Ok(Arc::clone(label));
        }
        let path = path()?;
        let label = if self.private.replaces(&path, status.device) {
            // No rule is about it.
            let sid = InitialSid::File.into();
            Arc::new(Label { sid, hint: Hint::default(), before: sid, rules: self.newest() })
        } else {
            self.renewed(known.as_deref(), &path, file_kind(status.kind))
        };
        if let Some(inode) = inode {
            self.insert(inode, &label);
        }
        Ok(label)
    }

    /// The label, under the rules in force, of a file that lies at `path` and had the label
    /// `known`.
    pub fn renewed(&self, known: Option<&Label>, path: &Path, kind: FileKind) -> Arc<Label> {
        let rules = self.rules.load();
        // The rules know a repository by the name of its directory; Git does not.
        let named = known_as(path);
        let sid =
            |rules: &PathRules| rules.sid_by_names(path, named.as_deref().unwrap_or(path), kind);
        let at = |rules: &PathRules| match known {
            Some(old) if sid(&old.rules) == sid(rules) => old.sid,
            _ => sid(rules),
        };
        let (sid, before) = (at(&rules.now), at(&rules.before));
        Arc::new(Label { sid, hint: Hint::default(), before, rules: Arc::clone(&rules.now) })
    }

    /// The label of a file that is known by a former place only.
    pub fn at_path(&self, path: &Path) -> Arc<Label> {
        self.renewed(None, path, FileKind::File)
    }

    /// As [`Labels::of_path`], before the last change of rules.
    pub fn of_path_before(&self, path: &Path, kind: FileKind) -> Sid {
        self.rules.load().before.sid(path, kind)
    }

    /// Whether the last change of rules gave files at `path` another label.
    pub fn has_changed(&self, path: &Path, kind: FileKind) -> bool {
        self.of_path(path, kind) != self.of_path_before(path, kind)
    }

    /// The labels of the files with a number: of that on `device`, or of all, as file systems with
    /// several devices do not say the same one everywhere.
    pub fn by_number(&self, device: (u32, u32), number: u64) -> Vec<Arc<Label>> {
        let seen = self.lock();
        let all = || seen.iter().filter(|(it, _)| it.number == number);
        match all().find(|(it, _)| it.device == device) {
            Some((_, label)) => vec![Arc::clone(label)],
            None => all().map(|(_, label)| Arc::clone(label)).collect(),
        }
    }

    /// Whether more files were seen than are remembered.
    pub fn has_forgotten(&self) -> bool {
        self.has_forgotten.load(Ordering::Acquire)
    }

    /// Labels a file by the rules for `path`; with several names, by all of them.
    pub fn relabel(&self, status: &Status, path: &Path, has_other_names: bool) {
        let label = self.of_file(status, || Ok(path.to_owned()));
        if let (Some(inode), Ok(label), true) = (status.inode(), label, has_other_names) {
            self.pinned().insert(inode, (label, path.to_owned()));
        }
    }

    /// The label that a file at `path` would have if it were first met there.
    pub fn of_path(&self, path: &Path, kind: FileKind) -> Sid {
        self.newest().sid(path, kind)
    }

    /// The same for a file that a program outside would know as `named`; see
    /// [`PathRules::sid_by_names`].
    pub fn of_path_by_names(&self, path: &Path, named: &Path, kind: FileKind) -> Sid {
        self.newest().sid_by_names(path, named, kind)
    }

    /// Whether a directory may move; see [`PathRules::agree`].
    pub fn agree(&self, from: &Path, to: &Path) -> bool {
        self.newest().agree(from, to)
    }

    /// See [`PathRules::is_even_below`].
    pub fn is_even_below(&self, dir: &Path) -> bool {
        self.newest().is_even_below(dir)
    }

    /// Gives a file that the sandbox has just created the label that the security server computed
    /// for it.
    pub fn created(&self, status: &Status, sid: Sid) {
        if let Some(inode) = status.inode() {
            self.insert(inode, &self.label(sid));
        }
    }

    fn newest(&self) -> Arc<PathRules> {
        Arc::clone(&self.rules.load().now)
    }

    fn label(&self, sid: Sid) -> Arc<Label> {
        Arc::new(Label { sid, hint: Hint::default(), before: sid, rules: self.newest() })
    }

    fn known(&self, inode: &Inode) -> Option<Arc<Label>> {
        let pinned = self.pinned().get(inode).map(|(label, _)| Arc::clone(label));
        pinned.or_else(|| self.lock().get(inode).cloned())
    }

    fn pinned(&self) -> MutexGuard<'_, HashMap<Inode, (Arc<Label>, PathBuf)>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, inode: Inode, label: &Arc<Label>) {
        let mut seen = self.lock();
        if seen.len() >= Self::MOST {
            seen.clear();
            self.has_forgotten.store(true, Ordering::Release);
        }
        seen.insert(inode, Arc::clone(label));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Inode, Arc<Label>, RandomState>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sid(number: u32) -> Sid {
        Sid::new(number).unwrap()
    }

    #[test]
    fn a_renamed_file_keeps_its_label() {
        let labels = Labels::new(PathRules::new(&[]).unwrap());
        let file = tempfile::NamedTempFile::new().unwrap();
        let status = Status::of(std::os::fd::AsFd::as_fd(file.as_file())).unwrap();
        labels.created(&status, sid(109));
        let unused = || -> rustix::io::Result<PathBuf> { panic!("the inode is known") };
        assert_eq!(labels.of_file(&status, unused).unwrap().sid, sid(109));
    }

    #[test]
    fn a_label_of_long_ago_is_not_the_one_before() {
        let rules = |number: u32| {
            let rule =
                flask::FileRule { path: "/.*".into(), kind: FileKind::Any, sid: Some(sid(number)) };
            PathRules::new(&[rule]).unwrap()
        };
        let labels = Labels::new(rules(101));
        let file = tempfile::NamedTempFile::new().unwrap();
        let status = Status::of(std::os::fd::AsFd::as_fd(file.as_file())).unwrap();
        let label = || labels.of_file(&status, || Ok("/a".into())).unwrap();
        assert_eq!(label().sid, sid(101));
        labels.change(rules(102));
        labels.change(rules(103));
        assert_eq!((label().before(), label().sid), (sid(102), sid(103)));
    }
}
