//! What the kernel says of a file, and where to look at it once more.

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Statx, StatxFlags, fcntl_getfl},
    io::{Result, fcntl_dupfd_cloexec},
};
use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

/// An inode by its number and birth time. Both can come again: see [`crate::proof`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inode {
    pub(crate) device: (u32, u32),
    pub(crate) number: u64,
    pub(crate) birth: (i64, u32),
}

/// Device and number of a file.
pub type FileNumber = ((u32, u32), u64);

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
    pub fn of(fd: BorrowedFd<'_>) -> Result<Self> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        Ok(Self::from_statx(&rustix::fs::statx(fd, c"", flags, Self::MASK)?))
    }

    /// Asks about what `path` leads to from `base`.
    pub fn of_path(base: BorrowedFd<'_>, path: &Path, flags: AtFlags) -> Result<Self> {
        let flags = flags | AtFlags::STATX_DONT_SYNC;
        Ok(Self::from_statx(&rustix::fs::statx(base, path, flags, Self::MASK)?))
    }

    /// Asks about the file at `name`, links followed: also one of the links of `/proc`.
    pub fn at(directory: impl AsFd, name: impl rustix::path::Arg) -> Result<Self> {
        let flags = AtFlags::STATX_DONT_SYNC;
        Ok(Self::from_statx(&rustix::fs::statx(directory, name, flags, Self::MASK)?))
    }

    /// Whether this very file lies at `path`, links at its end not followed; no when in doubt.
    pub fn lies_at(&self, path: &Path) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        Self::of_path(CWD, path, flags).is_ok_and(|it| it == *self)
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

    /// Device and number together.
    pub fn file_number(&self) -> FileNumber {
        (self.device, self.number)
    }

    pub(crate) fn inode(&self) -> Option<Inode> {
        self.birth.map(|birth| Inode { device: self.device, number: self.number, birth })
    }
}

/// How a file that has a [`Status`] is reached once more.
#[derive(Clone, Copy, Debug)]
pub enum FileRef<'a> {
    /// By an `O_PATH` descriptor of it.
    Fd(BorrowedFd<'a>),
    /// By a descriptor that it is open with, which the directory of this process's own descriptors
    /// has.
    Open(BorrowedFd<'a>, BorrowedFd<'a>),
    /// By a name in a directory, links followed: also one of the links of `/proc`.
    Name(BorrowedFd<'a>, &'a Path),
    /// Not at all: it has no label but one that is its own for certain.
    None,
}

impl FileRef<'_> {
    /// Lets `look` look at the file; `None` if another one is found there by now.
    pub(crate) fn with<T>(
        self,
        status: &Status,
        look: impl FnOnce(BorrowedFd<'_>) -> Option<T>,
    ) -> Option<T> {
        match self {
            Self::Fd(fd) | Self::Open(fd, _) => look(fd),
            Self::Name(directory, name) => {
                let file = open_path(directory, name)?;
                let is_it = Status::of(file.as_fd()) == Ok(*status);
                is_it.then(|| look(file.as_fd())).flatten()
            }
            Self::None => None,
        }
    }

    /// What keeps the file alive and does nothing else: it neither is open nor holds a lock.
    pub(crate) fn hold(self, status: &Status) -> Option<OwnedFd> {
        match self {
            Self::Open(fd, own_fds) => open_path(own_fds, Path::new(&fd.as_raw_fd().to_string())),
            _ => self.with(status, |fd| {
                let is_path = fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::PATH));
                is_path.then(|| fcntl_dupfd_cloexec(fd, 0).ok()).flatten()
            }),
        }
    }
}

fn open_path(directory: BorrowedFd<'_>, name: &Path) -> Option<OwnedFd> {
    rustix::fs::openat(directory, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
}
