//! The thread that waits in a trapped call: its memory, its directories, who it is.

use crate::{
    gate::View,
    sys::{memory, notify::Notification},
};
use rustix::{
    buffer::spare_capacity,
    fs::{Mode, OFlags},
    io::{Errno, Result},
};
use std::{
    cell::OnceCell,
    collections::BTreeSet,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};

/// `PATH_MAX` of `linux/limits.h`, the closing zero included.
const PATH_MAX: usize = 4096;
const PAGE: u64 = 4096;

/// A waiting thread. What it says of itself holds only while the notification is valid.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) view: &'a View,
    pub(crate) call: &'a Notification,
    /// Filled in when somebody asks: finding out takes longer than most decisions.
    pub(crate) who: &'a OnceCell<Identity>,
    /// Its working directory at this call, filled in likewise.
    pub(crate) cwd: &'a OnceCell<OwnedFd>,
}

/// Identity of a process, read once from `/proc/TID/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Name of the thread.
    pub(crate) comm: String,
    /// Process, in the monitor's PID namespace.
    pub(crate) pid: u32,
    /// Its parent, likewise.
    pub(crate) parent: u32,
    /// Process, in the sandbox's PID namespace.
    pub(crate) inner_pid: u32,
    /// Thread, in the sandbox's PID namespace.
    pub(crate) inner_tid: u32,
    /// File mode creation mask.
    pub(crate) umask: u32,
    /// User ID for file system accesses.
    pub(crate) fsuid: u32,
    /// Group ID for file system accesses.
    pub(crate) fsgid: u32,
    /// Capabilities in effect: bit n is capability n.
    pub(crate) capabilities: u64,
}

impl<'a> Caller<'a> {
    /// Argument `n` as a C `int`.
    pub(crate) fn int(&self, n: usize) -> i32 {
        self.call.args[n] as i32
    }

    /// The string at argument `n`: a copy that the program cannot change any more.
    pub(crate) fn path(&self, n: usize) -> Result<PathBuf> {
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
    pub(crate) fn bytes<const N: usize>(&self, address: u64) -> Result<[u8; N]> {
        let mut buffer = [0; N];
        self.fill(address, &mut buffer)?;
        Ok(buffer)
    }

    /// `len` bytes at `address`. The caller of this function bounds `len`.
    pub(crate) fn buffer(&self, address: u64, len: usize) -> Result<Vec<u8>> {
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

    /// The directory that a relative path starts from: `dirfd`, or the working directory for `AT_FDCWD`.
    pub(crate) fn base(&self, dirfd: i32) -> Result<OwnedFd> {
        match dirfd {
            libc::AT_FDCWD => self.cwd()?.try_clone().map_err(|_| Errno::MFILE),
            fd if fd >= 0 => self.link(&format!("{}/fd/{fd}", self.call.tid)),
            _ => Err(Errno::BADF),
        }
    }

    /// The working directory.
    pub(crate) fn cwd(&self) -> Result<&'a OwnedFd> {
        if let Some(known) = self.cwd.get() {
            return Ok(known);
        }
        let cwd = self.link(&format!("{}/cwd", self.call.tid))?;
        Ok(self.cwd.get_or_init(|| cwd))
    }

    /// What a magic link of the caller leads to.
    fn link(&self, name: &str) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.view.proc, name, flags, Mode::empty());
        fd.map_err(|error| if error == Errno::NOENT { Errno::BADF } else { error })
    }

    /// The file behind descriptor `fd` of the caller, as an `O_PATH` descriptor.
    pub(crate) fn file(&self, fd: i32) -> Result<OwnedFd> {
        if fd < 0 {
            return Err(Errno::BADF);
        }
        self.base(fd)
    }

    /// The flags that descriptor `fd` of the caller was opened with.
    pub(crate) fn flags(&self, fd: i32) -> Result<OFlags> {
        let text = read_text(self.view, &format!("{}/fdinfo/{fd}", self.call.tid))?;
        let field = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let bits = field.and_then(|field| u32::from_str_radix(field.trim(), 8).ok());
        bits.map(OFlags::from_bits_retain).ok_or(Errno::BADF)
    }

    /// Who the caller is.
    pub(crate) fn identity(&self) -> Result<&'a Identity> {
        if let Some(known) = self.who.get() {
            return Ok(known);
        }
        let identity = identity(self.view, self.call.tid)?;
        Ok(self.who.get_or_init(|| identity))
    }

    /// The program that the caller runs; empty when it cannot be told.
    pub(crate) fn program(&self) -> PathBuf {
        let link =
            rustix::fs::readlinkat(&self.view.proc, format!("{}/exe", self.call.tid), Vec::new());
        link.map(|link| Path::new(std::ffi::OsStr::from_bytes(link.as_bytes())).to_owned())
            .unwrap_or_default()
    }
}

/// Reads `/proc/TID/status`.
pub(crate) fn identity(view: &View, tid: u32) -> Result<Identity> {
    let text = read_text(view, &format!("{tid}/status"))?;
    parse_status(&text).ok_or(Errno::SRCH)
}

/// The supplementary groups of a thread.
pub(crate) fn groups(view: &View, tid: u32) -> Result<BTreeSet<u32>> {
    let text = read_text(view, &format!("{tid}/status"))?;
    let field = text.lines().find_map(|line| line.strip_prefix("Groups:")).ok_or(Errno::SRCH)?;
    let groups: Option<_> = field.split_whitespace().map(|word| word.parse().ok()).collect();
    groups.ok_or(Errno::SRCH)
}

/// How many seccomp filters a thread has.
pub(crate) fn filters(view: &View, tid: u32) -> Result<u32> {
    let text = read_text(view, &format!("{tid}/status"))?;
    let field = text.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    field.and_then(|field| field.trim().parse().ok()).ok_or(Errno::SRCH)
}

/// When a process started, in clock ticks since boot: field 22 of proc_pid_stat(5).
pub(crate) fn started(view: &View, pid: u32) -> Result<u64> {
    let text = read_text(view, &format!("{pid}/stat"))?;
    // The name in field 2 may hold anything, so fields are counted from its end.
    let field = text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19));
    field.and_then(|field| field.parse().ok()).ok_or(Errno::SRCH)
}

/// A soft limit of a thread's process, by the name that `/proc/TID/limits` has for it; `u64::MAX` for none.
pub(crate) fn limit(view: &View, tid: u32, name: &str) -> Result<u64> {
    let text = read_text(view, &format!("{tid}/limits"))?;
    let field = text.lines().find_map(|line| line.strip_prefix(name));
    match field.and_then(|field| field.split_whitespace().next()) {
        Some("unlimited") => Ok(u64::MAX),
        Some(number) => number.parse().map_err(|_| Errno::SRCH),
        None => Err(Errno::SRCH),
    }
}

/// The text of a file of the monitor's proc file system.
pub(crate) fn read_text(view: &View, name: &str) -> Result<String> {
    let fd = rustix::fs::openat(&view.proc, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    // The standard library would first ask how long it is, which these files do not know.
    let mut text = Vec::with_capacity(4096);
    loop {
        text.reserve(2048);
        match rustix::io::read(&fd, spare_capacity(&mut text)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    let text = String::from_utf8(text);
    Ok(text.unwrap_or_else(|other| String::from_utf8_lossy(other.as_bytes()).into_owned()))
}

fn parse_status(text: &str) -> Option<Identity> {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = |name: &str, index: usize| -> Option<u32> {
        let mut words = field(name)?.split_whitespace();
        words.nth(index)?.parse().ok()
    };
    let last = |name: &str| -> Option<u32> { field(name)?.split_whitespace().last()?.parse().ok() };
    Some(Identity {
        comm: field("Name")?.trim().to_owned(),
        pid: number("Tgid", 0)?,
        parent: number("PPid", 0)?,
        inner_pid: last("NStgid")?,
        inner_tid: last("NSpid")?,
        // A process that has ended has none.
        umask: field("Umask")
            .map_or(Some(0o777), |mask| u32::from_str_radix(mask.trim(), 8).ok())?,
        fsuid: number("Uid", 3)?,
        fsgid: number("Gid", 3)?,
        capabilities: u64::from_str_radix(field("CapEff")?.trim(), 16).ok()?,
    })
}

/// Where `fd` lies, as the kernel names it.
pub(crate) fn path_of(view: &View, fd: impl AsFd) -> Result<PathBuf> {
    use std::os::fd::AsRawFd;
    let number = fd.as_fd().as_raw_fd().to_string();
    let link = rustix::fs::readlinkat(&view.own_fds, number, Vec::with_capacity(256))?;
    Ok(std::ffi::OsString::from_vec(link.into_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_with_the_innermost_pids() {
        let text = "Name:\tcc1\nUmask:\t0022\nTgid:\t70\nNgid:\t0\nPid:\t71\nPPid:\t60\nUid:\t1\t2\t3\t4\n\
                    Gid:\t5\t6\t7\t8\nCapEff:\t0000000000000401\nNStgid:\t70\t9\nNSpid:\t71\t10\n";
        let want = Identity {
            comm: "cc1".into(),
            pid: 70,
            parent: 60,
            inner_pid: 9,
            inner_tid: 10,
            umask: 0o22,
            fsuid: 4,
            fsgid: 8,
            capabilities: 0x401,
        };
        assert_eq!(parse_status(text), Some(want));
        assert_eq!(parse_status("Name:\tcc1\n"), None);
    }
}
