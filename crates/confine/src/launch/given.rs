//! What the caller has given the run by leaving it open, and with which access.

use rustix::fs::{FileType, OFlags, Stat, fcntl_getfl, fstat};
use std::{collections::HashMap, os::fd::OwnedFd};

/// Objects behind descriptors that were handed on, with the access that these give.
///
/// An object without a name, such as a pipe, is opened anew by the links of `/proc`, with whatever
/// access: whoever was given one end of a pipe would have the other, too.
#[derive(Debug, Default)]
pub struct Given(HashMap<(u64, u64), Access>);

#[derive(Clone, Copy, Debug, Default)]
struct Access {
    read: bool,
    write: bool,
    /// Paths lead to it, so that policy is about it.
    is_named: bool,
}

impl Access {
    fn of(flags: OFlags) -> Self {
        let mode = flags & OFlags::RWMODE;
        let cuts = flags.contains(OFlags::TRUNC);
        Self {
            read: mode != OFlags::WRONLY,
            write: mode != OFlags::RDONLY || cuts,
            is_named: false,
        }
    }
}

impl Given {
    /// What is behind these descriptors.
    pub(super) fn behind(descriptors: impl Iterator<Item = OwnedFd>) -> Self {
        let mut all = Self::default();
        for fd in descriptors {
            let (Ok(found), Ok(flags)) = (fstat(&fd), fcntl_getfl(&fd)) else { continue };
            let access = Access::of(flags);
            let known = all.0.entry((found.st_dev, found.st_ino)).or_default();
            known.read |= access.read;
            known.write |= access.write;
            // A pipe counts itself as a link.
            let is_file = FileType::from_raw_mode(found.st_mode) != FileType::Fifo;
            known.is_named = is_file && found.st_nlink > 0;
        }
        all
    }

    /// Whether something without a name was given to be read only.
    pub(crate) fn lacks_write(&self) -> bool {
        self.0.values().any(|access| !access.is_named && !access.write)
    }

    /// Whether something without a name was given to be written only.
    pub(crate) fn lacks_read(&self) -> bool {
        self.0.values().any(|access| !access.is_named && !access.read)
    }

    /// Whether an object may be opened with `flags`, as far as it was given at all.
    #[must_use]
    pub fn allows(&self, object: &Stat, flags: OFlags) -> bool {
        let Some(given) = self.0.get(&(object.st_dev, object.st_ino)) else { return true };
        let wanted = Access::of(flags);
        (given.read || !wanted.read) && (given.write || !wanted.write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn one_end_of_a_pipe_is_given_without_the_other() {
        let (reader, writer) = io::pipe().unwrap();
        let (other, _writer) = io::pipe().unwrap();
        let (mine, _own) = io::pipe().unwrap();
        let [found, both, own] = [fstat(&reader), fstat(&other), fstat(&mine)].map(Result::unwrap);
        let given = Given::behind([reader.into(), other.into(), _writer.into()].into_iter());
        for (flags, want) in [
            (OFlags::RDONLY, true),
            (OFlags::WRONLY, false),
            (OFlags::RDWR, false),
            (OFlags::RDONLY | OFlags::TRUNC, false),
        ] {
            assert_eq!(given.allows(&found, flags), want, "{flags:?}");
            assert!(given.allows(&both, flags) && given.allows(&own, flags), "{flags:?}");
        }
        assert!(given.lacks_write() && !given.lacks_read());
        let given = Given::behind([OwnedFd::from(writer)].into_iter());
        assert!(given.lacks_read() && !given.lacks_write());
        assert!(given.allows(&found, OFlags::WRONLY) && !given.allows(&found, OFlags::RDONLY));
    }
}
