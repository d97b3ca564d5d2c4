//! Bytes in a file that has no name and that nobody can change any more.

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create},
    mm::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    ptr,
};

/// Bytes that can be mapped wherever they are needed.
pub(crate) struct Sealed {
    file: File,
    at: *const u8,
    len: usize,
}

// SAFETY: the pages at `at` are never written, by nobody, until `drop`, which has the value alone.
unsafe impl Send for Sealed {}
// SAFETY: as above.
unsafe impl Sync for Sealed {}

impl Sealed {
    /// A copy of `bytes`, of which there is at least one.
    pub(crate) fn new(bytes: &[u8]) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create("dewar request", flags)?);
        file.write_all(bytes)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
        fcntl_add_seals(&file, seals)?;
        let len = bytes.len();
        // SAFETY: the kernel chooses a place where nothing lies.
        let at =
            unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, &file, 0) }?;
        Ok(Self { file, at: at.cast_const().cast(), len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `new` has mapped `len` bytes there, and they stay until `drop`. The file is as long, and sealed, so
        // they are there and never change.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped it, and no slice of it outlives `self`. Should it fail, address space is lost.
        let _ = unsafe { munmap(self.at.cast_mut().cast(), self.len) };
    }
}
