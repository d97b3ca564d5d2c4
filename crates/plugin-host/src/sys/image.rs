//! Bytes that many plugins may see where they lie: a sealed copy, which nobody can change or cut
//! off any more.

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create, sendfile},
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    ptr, slice,
};

/// The content of a file as it was at one moment. Isolated plugins find it in their memory without
/// a copy ([`Session::view`](crate::Session::view)).
///
/// It is a copy, because a file that somebody cuts off while it is mapped ends the process that
/// looks at it.
#[derive(Debug)]
pub struct Image {
    fd: OwnedFd,
    /// Where all of it lies in this process, read-only; not null, unless it is empty.
    start: *const u8,
    len: usize,
}

// SAFETY: the mapping is read-only, of bytes that are sealed against every change. It belongs to
// this value alone, which unmaps it when it is dropped, on whatever thread.
unsafe impl Send for Image {}
// SAFETY: as above: through a shared reference the bytes can only be read.
unsafe impl Sync for Image {}

impl Image {
    /// The first `len` bytes of `file`, from its beginning.
    ///
    /// # Errors
    ///
    /// What the system says; [`io::ErrorKind::UnexpectedEof`] when the file has fewer.
    pub fn of_file(file: &File, len: usize) -> io::Result<Self> {
        let fd = memfd_create("dewar-image", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, len as u64)?;
        let mut at = 0;
        while at < len as u64 {
            let left = len - at as usize;
            match sendfile(&fd, file, Some(&mut at), left) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&fd, seals)?;
        Self::mapped(fd, len)
    }

    /// `fd` is sealed and has `len` bytes.
    fn mapped(fd: OwnedFd, len: usize) -> io::Result<Self> {
        if len == 0 {
            return Ok(Self { fd, start: ptr::null(), len });
        }
        let (access, flags) = (ProtFlags::READ, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: without `FIXED` the kernel chooses a place where nothing lies, so no memory that
        // is in use changes.
        let start = unsafe { mmap(ptr::null_mut(), len, access, flags, &fd, 0) }?;
        Ok(Self { fd, start: start.cast_const().cast(), len })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `start` is a mapping of `len` bytes of a file that has so many (`mapped`),
        // read-only, there until `drop`. The file is sealed: it can neither be written nor cut off.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }

    pub(super) fn fd(&self) -> impl AsFd + '_ {
        &self.fd
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: this is the mapping that `mapped` has made, all of it; slices of it have
            // ended with borrows of `self`. Should it fail, address space is lost.
            let _ = unsafe { munmap(self.start.cast_mut().cast(), self.len) };
        }
    }
}
