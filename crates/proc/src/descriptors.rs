//! `/proc/PID/fd`: proc_pid_fd(5).

use crate::Proc;
use rustix::{
    fs::{Mode, OFlags},
    io::Result,
};
use std::{
    fmt::Display,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// A table of descriptors: a directory with a link for each.
#[derive(Debug)]
pub struct Descriptors(OwnedFd);

impl<Fd: AsFd> Proc<Fd> {
    /// The table of descriptors that a thread uses. `of` is a thread, `self`, or `PID/task/TID`.
    ///
    /// # Errors
    ///
    /// Those of openat(2): `ENOENT` for a process that has ended.
    pub fn descriptors(&self, of: impl Display) -> Result<Descriptors> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(self, format!("{of}/fd"), flags, Mode::empty()).map(Descriptors)
    }

    /// What the link of one descriptor says.
    ///
    /// # Errors
    ///
    /// Those of readlinkat(2): `ENOENT` if it is not open.
    pub fn descriptor_link(&self, of: impl Display, fd: i32) -> Result<Vec<u8>> {
        let link = rustix::fs::readlinkat(self, format!("{of}/fd/{fd}"), Vec::new());
        link.map(|link| link.into_bytes())
    }
}

impl AsFd for Descriptors {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Descriptors {
    /// The descriptors that are open.
    ///
    /// # Errors
    ///
    /// Those of getdents(2).
    pub fn numbers(&self) -> Result<Vec<i32>> {
        let mut numbers = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            // The others are the directory itself and that above.
            numbers.extend(entry?.file_name().to_str().ok().and_then(|it| it.parse::<i32>().ok()));
        }
        Ok(numbers)
    }

    /// What the link of one of them says.
    ///
    /// # Errors
    ///
    /// Those of readlinkat(2): `ENOENT` if it is not open.
    pub fn link(&self, fd: i32) -> Result<Vec<u8>> {
        let link = rustix::fs::readlinkat(&self.0, fd.to_string(), Vec::new());
        link.map(|link| link.into_bytes())
    }
}

/// The number of a socket by the text of a link, `socket:[NUMBER]`.
#[must_use]
pub fn socket_number(link: &[u8]) -> Option<u64> {
    let number = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::{fd::AsRawFd as _, unix::net::UnixStream};

    #[test]
    fn what_is_open_is_listed_with_what_it_leads_to() {
        let proc = Proc::open().expect("/proc");
        let (one, other) = UnixStream::pair().expect("a pair");
        let table = proc.descriptors("self").expect("a table");
        let number = rustix::fs::fstat(&one).expect("a status").st_ino;
        for link in [table.link(one.as_raw_fd()), proc.descriptor_link("self", one.as_raw_fd())] {
            assert_eq!(socket_number(&link.expect("a link")), Some(number));
        }
        let numbers = table.numbers().expect("a list");
        assert!([&one, &other].iter().all(|it| numbers.contains(&it.as_raw_fd())));
        assert!(proc.descriptors("0").is_err());
    }

    #[test]
    fn a_socket_is_known_by_its_link() {
        assert_eq!(socket_number(b"socket:[4711]"), Some(4711));
        for link in [&b"pipe:[4711]"[..], b"socket:[]", b"socket:[4711", b"/socket:[1]"] {
            assert_eq!(socket_number(link), None);
        }
    }
}
