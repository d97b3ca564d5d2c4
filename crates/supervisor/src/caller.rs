//! The thread that waits in a trapped call: its memory, its directories, who it is.

use crate::{
    LinkDirectories,
    sys::{limit, memory, notify::Notification},
};
use proc::{Identity, ProcessTree};
use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::{Errno, Result},
};
use std::{
    cell::OnceCell,
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};

/// `PATH_MAX` of `linux/limits.h`, the closing zero included.
const PATH_MAX: usize = 4096;
const PAGE: u64 = 4096;

/// A waiting thread. What it says of itself holds only while the notification is valid.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The processes of the sandbox.
    pub tree: &'a ProcessTree,
    /// The call that it waits in.
    pub call: &'a Notification,
    /// Filled in when somebody asks: finding out takes longer than most decisions.
    pub who: &'a OnceCell<Identity>,
    /// Its working directory at this call, filled in likewise.
    pub cwd: &'a OnceCell<OwnedFd>,
    /// Where the links lie that lead this call; absent where it makes no difference.
    pub links: Option<&'a LinkDirectories>,
}

impl<'a> Caller<'a> {
    /// Argument `n` as a C `int`.
    pub fn int(&self, n: usize) -> i32 {
        self.call.args[n] as i32
    }

    /// The string at argument `n`: a copy that the program cannot change any more.
    pub fn path(&self, n: usize) -> Result<PathBuf> {
        let mut bytes = Vec::with_capacity(256);
        let mut address = self.call.args[n];
        while bytes.len() < PATH_MAX {
            // A read never crosses into the next page, which may not exist.
            let room = (PAGE - address % PAGE).min(256) as usize;
            let start = bytes.len();
            bytes.resize(start + room, 0);
            let got = memory::read(self.call.tid, address, &mut bytes[start..])?;
            bytes.truncate(start + got);
            if let Some(end) = bytes[start..].iter().position(|byte| *byte == 0) {
                bytes.truncate(start + end);
                if bytes.len() >= PATH_MAX {
                    break;
                }
                return Ok(std::ffi::OsString::from_vec(bytes).into());
            }
            if got < room {
                return Err(Errno::FAULT);
            }
            address += got as u64;
        }
        Err(Errno::NAMETOOLONG)
    }

    /// `N` bytes at `address`.
    pub fn bytes<const N: usize>(&self, address: u64) -> Result<[u8; N]> {
        let mut buffer = [0; N];
        self.fill(address, &mut buffer)?;
        Ok(buffer)
    }

    /// `len` bytes at `address`. The caller of this function bounds `len`.
    pub fn buffer(&self, address: u64, len: usize) -> Result<Vec<u8>> {
        let mut buffer = vec![0; len];
        self.fill(address, &mut buffer)?;
        Ok(buffer)
    }

    fn fill(&self, address: u64, buffer: &mut [u8]) -> Result<()> {
        if memory::read(self.call.tid, address, buffer)? == buffer.len() {
            Ok(())
        } else {
            Err(Errno::FAULT)
        }
    }

    /// The directory that a relative path starts from: `dirfd`, or the working directory for
    /// `AT_FDCWD`.
    pub fn base(&self, dirfd: i32) -> Result<OwnedFd> {
        match dirfd {
            libc::AT_FDCWD => self.cwd()?.try_clone().map_err(|_| Errno::MFILE),
            fd if fd >= 0 => self.link(&format!("{}/fd/{fd}", self.call.tid)),
            _ => Err(Errno::BADF),
        }
    }

    /// The working directory.
    pub fn cwd(&self) -> Result<&'a OwnedFd> {
        if let Some(known) = self.cwd.get() {
            return Ok(known);
        }
        let cwd = self.link(&format!("{}/cwd", self.call.tid))?;
        Ok(self.cwd.get_or_init(|| cwd))
    }

    /// What a magic link of the caller leads to.
    fn link(&self, name: &str) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.tree.proc, name, flags, Mode::empty());
        fd.map_err(|error| if error == Errno::NOENT { Errno::BADF } else { error })
    }

    /// The file behind descriptor `fd` of the caller, as an `O_PATH` descriptor.
    pub fn file(&self, fd: i32) -> Result<OwnedFd> {
        if fd < 0 {
            return Err(Errno::BADF);
        }
        self.base(fd)
    }

    /// The flags that descriptor `fd` of the caller was opened with.
    pub fn flags(&self, fd: i32) -> Result<OFlags> {
        self.tree.proc.descriptor(self.call.tid, fd)?.flags().ok_or(Errno::BADF)
    }

    /// Whether its table of descriptors takes one more: `EMFILE` where not, which the kernel says
    /// before it looks for a file. Another thread can fill the table before the descriptor is
    /// there.
    pub fn has_room(&self) -> Result<()> {
        let (tid, proc) = (self.call.tid, &self.tree.proc);
        let most = limit::open_files(tid).or_else(|_| proc.limit(tid, "Max open files"))?;
        // Since Linux 6.2, the size is how many are open; before, 0.
        let table = format!("{tid}/fd");
        let open = rustix::fs::statat(proc, &table, AtFlags::empty())?.st_size as u64;
        if (1..most).contains(&open) {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let table = rustix::fs::openat(proc, &table, flags, Mode::empty())?;
        let number =
            |entry: rustix::fs::DirEntry| entry.file_name().to_str().ok()?.parse::<u64>().ok();
        let open = rustix::fs::Dir::new(table)?.filter_map(|entry| number(entry.ok()?));
        let below = open.filter(|fd| *fd < most).count() as u64;
        if below < most { Ok(()) } else { Err(Errno::MFILE) }
    }

    /// Who the caller is.
    pub fn identity(&self) -> Result<&'a Identity> {
        if let Some(known) = self.who.get() {
            return Ok(known);
        }
        let identity = self.tree.proc.identity(self.call.tid)?;
        Ok(self.who.get_or_init(|| identity))
    }

    /// The program that the caller runs; empty when it cannot be told.
    pub fn program(&self) -> PathBuf {
        let link =
            rustix::fs::readlinkat(&self.tree.proc, format!("{}/exe", self.call.tid), Vec::new());
        link.map(|link| Path::new(std::ffi::OsStr::from_bytes(link.as_bytes())).to_owned())
            .unwrap_or_default()
    }
}
