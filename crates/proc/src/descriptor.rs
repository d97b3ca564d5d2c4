//! `/proc/PID/fdinfo/FD`: proc_pid_fdinfo(5); and what the links of `/proc/PID/fd` say.

use rustix::fs::OFlags;
use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// The text of an `fdinfo`.
#[derive(Clone, Debug)]
pub struct DescriptorInfo(String);

/// A watch of an inotify descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The number by which inotify_rm_watch(2) knows it.
    pub number: i32,
    /// The inode that is watched.
    pub inode: u64,
    /// Major and minor number of the inode's device.
    pub device: (u32, u32),
}

impl DescriptorInfo {
    /// Takes the text of the file.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }

    /// The flags that it was opened with.
    #[must_use]
    pub fn flags(&self) -> Option<OFlags> {
        let bits = u32::from_str_radix(self.field("flags")?.trim(), 8).ok()?;
        Some(OFlags::from_bits_retain(bits))
    }

    /// Of a unix socket, how many descriptors wait in its queue, and in those of connections that
    /// nobody has accepted.
    #[must_use]
    pub fn waiting_descriptors(&self) -> Option<u64> {
        self.field("scm_fds")?.trim().parse().ok()
    }

    /// Where it reads and writes next.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.field("pos")?.trim().parse().ok()
    }

    /// The process that a PID descriptor stands for, in the innermost PID namespace; `None` for
    /// other descriptors. A process that has ended has no number.
    #[must_use]
    pub fn process(&self) -> Option<Option<u32>> {
        let numbers = self.field("NSpid")?;
        Some(numbers.split_whitespace().last().and_then(|pid| pid.parse().ok()))
    }

    /// How many descriptors are in flight to a socket. Old kernels do not say.
    #[must_use]
    pub fn in_flight(&self) -> Option<usize> {
        self.field("scm_fds")?.trim().parse().ok()
    }

    /// The watches of an inotify descriptor; of each that cannot be read, `None`.
    pub fn watches(&self) -> impl Iterator<Item = Option<Watch>> {
        self.0.lines().filter(|line| line.starts_with("inotify ")).map(Watch::parse)
    }
}

impl Watch {
    /// Reads a line. All numbers are hexadecimal.
    fn parse(line: &str) -> Option<Self> {
        let word = |name: &str| {
            let mut words = line.strip_prefix("inotify ")?.split_whitespace();
            let word = words.find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))?;
            u64::from_str_radix(word, 16).ok()
        };
        let device = u32::try_from(word("sdev")?).ok()?;
        Some(Self {
            number: i32::try_from(word("wd")?).ok()?,
            inode: word("ino")?,
            // `MKDEV` of `linux/kdev_t.h`.
            device: (device >> 20, device & 0xf_ffff),
        })
    }
}

/// What the kernel writes behind the path of a file that has been deleted, or replaced there.
pub(crate) const DELETED: &[u8] = b" (deleted)";
/// How the texts of memory begin, which never had a name.
const MEMORY: [&[u8]; 4] = [b"/memfd:", b"/dev/zero", b"/SYSV", b"/anon_hugepage"];

/// Where a file lies by the text of a link, or lay when it was deleted or replaced; `None` for what
/// never had a name: pipes, sockets, memory.
///
/// A name may end as the kernel marks what is deleted: `is_at` says whether a path, links at its
/// end not followed, leads to this very file.
#[must_use]
pub fn named(link: &[u8], is_at: impl FnOnce(&Path) -> bool) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(link));
    let Some(before) = link.strip_suffix(DELETED) else {
        return path.is_absolute().then(|| path.to_owned());
    };
    if !path.is_absolute() || MEMORY.iter().any(|start| link.starts_with(start)) {
        return None;
    }
    Some(if is_at(path) { path.to_owned() } else { OsStr::from_bytes(before).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_had_a_name_has_no_place() {
        let named = |text: &str| named(text.as_bytes(), |_| false);
        assert_eq!(named("/a/b (deleted)"), Some("/a/b".into()));
        assert_eq!(named("/memfd:x (deleted)"), None);
        assert_eq!(named("pipe:[1]"), None);
        assert_eq!(named("pipe:[1] (deleted)"), None);
    }

    #[test]
    fn numbers_of_watches_are_hexadecimal() {
        let line = "inotify wd:1f ino:9e7e sdev:800013 mask:800afce ignored_mask:0 fhandle-bytes:8";
        let watch = Watch { number: 31, inode: 0x9e7e, device: (8, 0x13) };
        let info = DescriptorInfo::new(format!("pos:\t0\n{line}\ninotify wd:x ino:1 sdev:1\n"));
        assert_eq!(info.watches().collect::<Vec<_>>(), [Some(watch), None]);
    }

    #[test]
    fn descriptors_say_what_they_are() {
        let info = |text: &str| DescriptorInfo::new(text.into());
        assert_eq!(
            info("pos:\t0\nflags:\t02000002\n").flags(),
            Some(OFlags::RDWR | OFlags::CLOEXEC)
        );
        assert_eq!(info("Pid:\t70\nNSpid:\t70\t9\n").process(), Some(Some(9)));
        assert_eq!(info("Pid:\t-1\nNSpid:\t-1\n").process(), Some(None));
        assert_eq!(info("pos:\t0\n").process(), None);
        assert_eq!(info("scm_fds: 3\n").in_flight(), Some(3));
    }
}
