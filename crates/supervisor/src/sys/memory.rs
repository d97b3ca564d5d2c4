//! Memory of a caller that waits in a trapped call, or is stopped; and memory to put in its place.
#![allow(unsafe_code)]

use rustix::io::{Errno, Result};
use std::{
    os::fd::{AsRawFd as _, BorrowedFd, OwnedFd},
    ptr::NonNull,
};

/// Reads up to `buffer.len()` bytes at `address` of thread `tid`; the count is short where the
/// mapping ends (process_vm_readv(2)).
pub fn read(tid: u32, address: u64, buffer: &mut [u8]) -> Result<usize> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: `local` spans exactly `buffer`, which is borrowed mutably for the call; `remote` is
    // an address in the other process, which the kernel checks.
    let count = unsafe {
        libc::process_vm_readv(tid as libc::pid_t, &raw const local, 1, &raw const remote, 1, 0)
    };
    usize::try_from(count)
        .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::FAULT))
}

/// Writes `bytes` at `address` of thread `tid` (process_vm_writev(2)): only where the program said
/// that it expects a result.
pub fn write(tid: u32, address: u64, bytes: &[u8]) -> Result<()> {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: `local` spans exactly `bytes`, which the call only reads; `remote` is an address in
    // the other process, which the kernel checks.
    let count = unsafe {
        libc::process_vm_writev(tid as libc::pid_t, &raw const local, 1, &raw const remote, 1, 0)
    };
    if usize::try_from(count) == Ok(bytes.len()) { Ok(()) } else { Err(Errno::FAULT) }
}

/// A file without content that nobody can give any.
pub fn sealed_nothing() -> Result<OwnedFd> {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    let file = memfd_create(c"nothing", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}

/// The first page of a file, mapped for nobody to look at. Dropped, it is gone.
#[derive(Debug)]
pub struct Mapped(NonNull<libc::c_void>);

impl Mapped {
    const BYTES: usize = 1;

    /// Maps a file that is open for reading.
    pub fn new(file: BorrowedFd<'_>) -> Result<Self> {
        let (protection, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE);
        let (anywhere, fd) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: without an address the kernel maps where nothing is, so no memory in use changes.
        let address = unsafe { libc::mmap(anywhere, Self::BYTES, protection, flags, fd, 0) };
        let address = NonNull::new(address).filter(|it| it.as_ptr() != libc::MAP_FAILED);
        let failed = || Errno::from_io_error(&std::io::Error::last_os_error());
        address.map(Self).ok_or_else(|| failed().unwrap_or(Errno::NOMEM))
    }

    /// Where it lies.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: `self.0` is a mapping of `BYTES` that `new` has made, and nothing refers to it.
        unsafe { libc::munmap(self.0.as_ptr(), Self::BYTES) };
    }
}
