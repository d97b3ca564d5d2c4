//! A proc file system, by its descriptor, and the texts in it.

use crate::{DescriptorInfo, Identity, Stat, Status};
use rustix::{
    buffer::spare_capacity,
    fs::{CWD, Mode, OFlags},
    io::{Errno, Result},
};
use std::{
    fmt::Display,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// A proc file system. Its processes have the numbers of the PID namespace that it was mounted in.
#[derive(Clone, Copy, Debug)]
pub struct Proc<Fd = OwnedFd>(Fd);

impl Proc {
    /// The one at `/proc`.
    ///
    /// # Errors
    ///
    /// That of openat(2).
    pub fn open() -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, "/proc", flags, Mode::empty()).map(Self)
    }
}

impl<Fd: AsFd> AsFd for Proc<Fd> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl<Fd: AsFd> Proc<Fd> {
    /// The one whose root `directory` is.
    pub fn new(directory: Fd) -> Self {
        Self(directory)
    }

    /// The text of the file `name`.
    ///
    /// # Errors
    ///
    /// Those of openat(2) and read(2): `ENOENT` or `ESRCH` for a process that has ended.
    pub fn text(&self, name: &str) -> Result<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(self, name, flags, Mode::empty())?;
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

    /// The entries of a directory whose names are numbers.
    pub(crate) fn numbers(&self, directory: &str) -> Result<Vec<u32>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(self, directory, flags, Mode::empty())?;
        let entries = rustix::fs::Dir::new(fd)?;
        let number = |entry: rustix::fs::DirEntry| entry.file_name().to_str().ok()?.parse().ok();
        Ok(entries.filter_map(|entry| number(entry.ok()?)).collect())
    }

    /// `/proc/TID/status`.
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`].
    pub fn status(&self, tid: u32) -> Result<Status> {
        self.text(&format!("{tid}/status")).map(Status::new)
    }

    /// Who a thread is, by `/proc/TID/status`.
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`]; `ESRCH` if the text lacks something.
    pub fn identity(&self, tid: u32) -> Result<Identity> {
        self.status(tid)?.identity().ok_or(Errno::SRCH)
    }

    /// `/proc/TID/stat`.
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`]; `ESRCH` if the text lacks something.
    pub fn stat(&self, tid: u32) -> Result<Stat> {
        Stat::parse(&self.text(&format!("{tid}/stat"))?).ok_or(Errno::SRCH)
    }

    /// When a process started, in clock ticks since boot. With the PID, this names a process.
    ///
    /// # Errors
    ///
    /// As of [`Proc::stat`].
    pub fn started(&self, pid: u32) -> Result<u64> {
        self.stat(pid).map(|stat| stat.started)
    }

    /// What `fdinfo` says of a descriptor. `of` is a thread, `self`, or `PID/task/TID`.
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`].
    pub fn descriptor(&self, of: impl Display, fd: i32) -> Result<DescriptorInfo> {
        self.text(&format!("{of}/fdinfo/{fd}")).map(DescriptorInfo::new)
    }

    /// `/proc/TID/maps`, a [`Mapping`](crate::Mapping) each line.
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`].
    pub fn maps(&self, tid: u32) -> Result<String> {
        self.text(&format!("{tid}/maps"))
    }

    /// `/proc/TID/smaps`, for [`may_be_written`](crate::may_be_written).
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`].
    pub fn smaps(&self, tid: u32) -> Result<String> {
        self.text(&format!("{tid}/smaps"))
    }

    /// The personality of a thread, as bits.
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`]; `EPERM` if the text is no number.
    pub fn personality(&self, tid: u32) -> Result<u32> {
        let text = self.text(&format!("{tid}/personality"))?;
        u32::from_str_radix(text.trim(), 16).map_err(|_| Errno::PERM)
    }

    /// A soft limit of a thread's process, by the name that `/proc/TID/limits` has for it;
    /// `u64::MAX` for none.
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`]; `ESRCH` if the text lacks it.
    pub fn limit(&self, tid: u32, name: &str) -> Result<u64> {
        let text = self.text(&format!("{tid}/limits"))?;
        let field = text.lines().find_map(|line| line.strip_prefix(name));
        match field.and_then(|field| field.split_whitespace().next()) {
            Some("unlimited") => Ok(u64::MAX),
            Some(number) => number.parse().map_err(|_| Errno::SRCH),
            None => Err(Errno::SRCH),
        }
    }

    /// The number and the first argument of the system call that a thread waits in; `None` if it
    /// runs, or cannot be looked at.
    pub fn syscall(&self, tid: u32) -> Option<(i32, u64)> {
        parse_syscall(&self.text(&format!("{tid}/syscall")).ok()?)
    }
}

/// Reads proc_pid_syscall(5): the number in decimal, the arguments in hexadecimal.
fn parse_syscall(text: &str) -> Option<(i32, u64)> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    Some((number, u64::from_str_radix(words.next()?.get(2..)?, 16).ok()?))
}

/// Of what has ended nothing is left to be found. What cannot be looked at for another reason is an
/// error: it may be there.
///
/// # Errors
///
/// That of `found`, unless it says that something has ended.
pub fn none_if_gone<T: Default>(found: Result<T>) -> Result<T> {
    match found {
        Err(Errno::NOENT | Errno::SRCH) => Ok(T::default()),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_call_has_a_number_and_arguments() {
        assert_eq!(parse_syscall("56 0x4111 0x0 0x7ffe 0x7f00\n"), Some((56, 0x4111)));
        assert_eq!(parse_syscall("running\n"), None);
        assert_eq!(parse_syscall(""), None);
    }

    #[test]
    fn limits_are_found_by_their_names() {
        let proc = Proc::open().expect("/proc");
        let own = std::process::id();
        assert!(proc.limit(own, "Max open files").is_ok_and(|it| it > 0));
        assert_eq!(proc.limit(own, "Max nonsense"), Err(Errno::SRCH));
    }
}
