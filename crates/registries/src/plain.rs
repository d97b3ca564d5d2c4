//! Opens files that others may have put there. To open may do something: a FIFO without a peer
//! hangs, and a device acts. So a file is looked at before it is opened.

use rustix::fs::{FileType, Mode, OFlags};
use std::{
    fs::File,
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
};

/// A file that was found, and has not been opened yet.
#[derive(Debug)]
pub struct Plain {
    handle: OwnedFd,
    place: PathBuf,
    kind: FileType,
}

/// File systems whose files may wait for something, or tell somebody that they were read: procfs,
/// sysfs, debugfs, tracefs, of `linux/magic.h`.
const MADE_UP: [u32; 4] = [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163];

impl Plain {
    /// What `path` leads to, whatever it is.
    ///
    /// # Errors
    ///
    /// What the system says if there is nothing, or it cannot be looked at.
    pub fn find(path: &Path) -> io::Result<Self> {
        let handle = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode);
        let place = std::fs::read_link(own(&handle))?;
        Ok(Self { handle, place, kind })
    }

    /// Where it lies, without links, whatever its name leads to by now.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Whether it is a pipe without a name, which somebody holds already.
    #[must_use]
    pub fn is_nameless_pipe(&self) -> bool {
        self.kind == FileType::Fifo && !self.place.is_absolute()
    }

    /// Opens it to read.
    ///
    /// # Errors
    ///
    /// That it is no file, or what the system says.
    pub fn open(&self) -> io::Result<File> {
        match self.kind {
            FileType::RegularFile => {
                let made_up = rustix::fs::fstatfs(&self.handle)?.f_type;
                if MADE_UP.into_iter().any(|magic| i64::from(magic) == made_up) {
                    return Err(io::Error::other("it is no file, but what the kernel says"));
                }
                File::open(own(&self.handle))
            }
            FileType::Directory => Err(io::Error::other("it is a directory")),
            _ => Err(io::Error::other("it is no file, but a pipe, a socket or a device")),
        }
    }
}

/// The file itself, as this process holds it.
fn own(handle: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_makes_up_is_not_read() {
        for path in ["/proc/version", "/sys/kernel/notes"] {
            let found = Plain::find(Path::new(path)).unwrap();
            assert_eq!(
                found.open().unwrap_err().to_string(),
                "it is no file, but what the kernel says"
            );
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Plain::find(file.path()).unwrap().open().is_ok());
    }
}
