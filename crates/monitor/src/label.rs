//! Labels of files: by rule at first sight, afterwards with the inode.

use avc::Hint;
use flask::{FileKind, Sid};
use labelling::PathRules;
use rustix::fs::{AtFlags, FileType, StatxFlags};
use std::{
    collections::HashMap,
    ffi::OsStr,
    os::{fd::BorrowedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// A labelled object, and where the last answer about it lies.
#[derive(Debug)]
pub(crate) struct Label {
    pub(crate) sid: Sid,
    pub(crate) hint: Hint,
}

impl Label {
    pub(crate) fn new(sid: Sid) -> Arc<Self> {
        Arc::new(Self { sid, hint: Hint::default() })
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) kind: FileType,
    pub(crate) device: (u32, u32),
    pub(crate) number: u64,
    birth: Option<(i64, u32)>,
}

impl Status {
    /// Asks about the file behind `fd`, which may be an `O_PATH` descriptor.
    pub(crate) fn of(fd: BorrowedFd<'_>) -> rustix::io::Result<Self> {
        let mask = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BTIME;
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let statx = rustix::fs::statx(fd, c"", flags, mask)?;
        let born = statx.stx_mask & StatxFlags::BTIME.bits() != 0;
        Ok(Self {
            kind: FileType::from_raw_mode(statx.stx_mode.into()),
            device: (statx.stx_dev_major, statx.stx_dev_minor),
            number: statx.stx_ino,
            birth: born.then_some((statx.stx_btime.tv_sec, statx.stx_btime.tv_nsec)),
        })
    }

    fn inode(&self) -> Option<Inode> {
        self.birth.map(|birth| Inode { device: self.device, number: self.number, birth })
    }
}

/// The label of every file seen. Bounded: beyond [`Labels::MOST`] inodes it starts anew from the rules.
#[derive(Debug)]
pub(crate) struct Labels {
    rules: PathRules,
    seen: Mutex<HashMap<Inode, Arc<Label>>>,
}

impl Labels {
    /// About 8 MiB of labels.
    const MOST: usize = 100_000;

    pub(crate) fn new(rules: PathRules) -> Self {
        Self { rules, seen: Mutex::default() }
    }

    /// The label of a file: its inode's, or at first sight that of its path, which `path` finds out.
    pub(crate) fn of_file(
        &self,
        status: &Status,
        path: impl FnOnce() -> rustix::io::Result<PathBuf>,
    ) -> rustix::io::Result<Arc<Label>> {
        let inode = status.inode();
        if let Some(label) = inode.and_then(|inode| self.lock().get(&inode).cloned()) {
            return Ok(label);
        }
        let label = Label::new(self.of_path(&path()?, file_kind(status.kind)));
        if let Some(inode) = inode {
            self.insert(inode, &label);
        }
        Ok(label)
    }

    /// The label that a file at `path` would have at first sight.
    pub(crate) fn of_path(&self, path: &Path, kind: FileKind) -> Sid {
        self.rules.sid(path, kind)
    }

    /// Whether a directory may move; see [`PathRules::agree`].
    pub(crate) fn agree(&self, from: &Path, to: &Path) -> bool {
        self.rules.agree(from, to)
    }

    /// Gives a file that the sandbox has just created the label that the security server computed for it.
    pub(crate) fn created(&self, status: &Status, sid: Sid) {
        if let Some(inode) = status.inode() {
            self.insert(inode, &Label::new(sid));
        }
    }

    fn insert(&self, inode: Inode, label: &Arc<Label>) {
        let mut seen = self.lock();
        if seen.len() >= Self::MOST {
            seen.clear();
        }
        seen.insert(inode, Arc::clone(label));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Inode, Arc<Label>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kind of file as labelling rules name it.
pub(crate) fn file_kind(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Dir,
        FileType::CharacterDevice => FileKind::Char,
        FileType::BlockDevice => FileKind::Block,
        FileType::Fifo => FileKind::Pipe,
        FileType::Socket => FileKind::Socket,
        FileType::Symlink => FileKind::Symlink,
        FileType::Unknown => FileKind::Any,
    }
}

/// `path` without `.`, `..` and doubled slashes, by its words alone.
pub(crate) fn normal(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => drop(out.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}

/// Bytes as a path.
pub(crate) fn path_from(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sid(number: u32) -> Sid {
        Sid::new(number).unwrap()
    }

    #[test]
    fn normal_paths_keep_to_the_root() {
        assert_eq!(normal(Path::new("/a/../../b/./c//d")), Path::new("/b/c/d"));
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
}
