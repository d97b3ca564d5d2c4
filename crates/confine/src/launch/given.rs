//! What the caller has given the run by leaving it open, and with which access.

use super::Terminals;
use rustix::{
    fs::{FileType, OFlags, Stat, fcntl_getfl, fstat},
    io::Result,
};
use std::{collections::HashMap, os::fd::OwnedFd};

/// What a descriptor can be used for.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAccess {
    read: bool,
    write: bool,
}

impl OpenAccess {
    /// By the flags that it was, or is to be, opened with.
    #[must_use]
    pub fn of(flags: OFlags) -> Self {
        let mode = flags & OFlags::RWMODE;
        let cuts = flags.contains(OFlags::TRUNC);
        Self { read: mode != OFlags::WRONLY, write: mode != OFlags::RDONLY || cuts }
    }

    /// Whether whoever has it has `wanted`.
    #[must_use]
    pub fn gives(self, wanted: Self) -> bool {
        (self.read || !wanted.read) && (self.write || !wanted.write)
    }
}

/// Objects behind descriptors that were handed on, with the access that these give.
///
/// An object without a name, such as a pipe, is opened anew by the links of `/proc`, with whatever
/// access: whoever was given one end of a pipe would have the other, too.
#[derive(Debug, Default)]
pub struct Given {
    objects: HashMap<(u64, u64), Object>,
    /// Its terminals, to which come those that the run makes.
    pub terminals: Terminals,
}

#[derive(Debug, Default)]
struct Object {
    access: OpenAccess,
    /// Paths lead to it, so that policy is about it.
    is_named: bool,
}

impl Given {
    /// What is behind these descriptors.
    pub(super) fn behind(descriptors: impl Iterator<Item = Result<OwnedFd>>) -> Result<Self> {
        let mut all = Self::default();
        for fd in descriptors {
            let fd = fd?;
            let (found, access) = (fstat(&fd)?, OpenAccess::of(fcntl_getfl(&fd)?));
            let known = all.objects.entry((found.st_dev, found.st_ino)).or_default();
            known.access.read |= access.read;
            known.access.write |= access.write;
            // A pipe counts itself as a link.
            let is_file = FileType::from_raw_mode(found.st_mode) != FileType::Fifo;
            known.is_named = is_file && found.st_nlink > 0;
            all.terminals.add_given(&fd, &found);
        }
        Ok(all)
    }

    /// Whether an object was given.
    #[must_use]
    pub fn has(&self, object: &Stat) -> bool {
        self.objects.contains_key(&(object.st_dev, object.st_ino))
    }

    /// Whether something without a name was given to be read only.
    pub(crate) fn lacks_write(&self) -> bool {
        self.objects.values().any(|object| !object.is_named && !object.access.write)
    }

    /// Whether something without a name was given to be written only.
    pub(crate) fn lacks_read(&self) -> bool {
        self.objects.values().any(|object| !object.is_named && !object.access.read)
    }

    /// Whether an object may be opened for `wanted`, as far as it was given at all.
    #[must_use]
    pub fn allows(&self, object: &Stat, wanted: OpenAccess) -> bool {
        let given = self.objects.get(&(object.st_dev, object.st_ino));
        given.is_none_or(|given| given.access.gives(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::io;

    #[test]
    fn one_end_of_a_pipe_is_given_without_the_other() {
        let (reader, writer) = io::pipe().unwrap();
        let (other, its_writer) = io::pipe().unwrap();
        let (mine, _) = io::pipe().unwrap();
        let [found, both, own] = [fstat(&reader), fstat(&other), fstat(&mine)].map(Result::unwrap);
        let behind = |all: Vec<OwnedFd>| Given::behind(all.into_iter().map(Ok)).unwrap();
        let given = behind(vec![reader.into(), other.into(), its_writer.into()]);
        for (flags, want) in [
            (OFlags::RDONLY, true),
            (OFlags::WRONLY, false),
            (OFlags::RDWR, false),
            (OFlags::RDONLY | OFlags::TRUNC, false),
        ] {
            let wanted = OpenAccess::of(flags);
            assert_eq!(given.allows(&found, wanted), want, "{flags:?}");
            assert!(given.allows(&both, wanted) && given.allows(&own, wanted), "{flags:?}");
        }
        assert!(given.lacks_write() && !given.lacks_read());
        let given = behind(vec![writer.into()]);
        let allows = |flags| given.allows(&found, OpenAccess::of(flags));
        assert!(allows(OFlags::WRONLY) && !allows(OFlags::RDONLY));
        assert!(given.lacks_read() && !given.lacks_write());
        // What cannot be looked at is no answer.
        assert!(Given::behind([Err(Errno::MFILE)].into_iter()).is_err());
    }
}
