//! What no library offers safely: memory that two processes share, and the descriptor of a socket's
//! peer.
#![allow(unsafe_code)]

use crate::{MAX_DESCRIPTORS, region::Region};
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create},
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap},
};
use std::{
    io::{self, IoSliceMut},
    mem,
    ops::Deref,
    os::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    ptr::{self, NonNull},
    sync::atomic::AtomicU64,
};

/// Without these, the other side could cut the memory short under us, and an access would end in
/// `SIGBUS`.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// New memory for one [`Region`], all zero, of a size that nobody can change.
///
/// # Errors
///
/// Whatever the system says.
pub(crate) fn new_memory() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::NOEXEC_SEAL;
    let memory = memfd_create("dewar-port", flags)
        .or_else(|_| memfd_create("dewar-port", flags - MemfdFlags::NOEXEC_SEAL))?;
    ftruncate(&memory, mem::size_of::<Region>() as u64)?;
    fcntl_add_seals(&memory, SEALS)?;
    Ok(memory)
}

/// A region in memory that another process may write at any time. It is not inherited by children.
pub(crate) struct Shared(NonNull<Region>);

// SAFETY: a `Region` consists of atomics only, so references to it may be used from any thread; the
// mapping belongs to the process, not to the thread that made it.
unsafe impl Send for Shared {}
// SAFETY: as above: `&Shared` gives nothing but `&Region`, whose fields are atomics.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps memory that [`new_memory`] made, here or in the other process.
    ///
    /// # Errors
    ///
    /// `InvalidData` for memory of another size, or whose size could still change.
    pub(crate) fn map(memory: BorrowedFd<'_>) -> io::Result<Self> {
        let size = mem::size_of::<Region>();
        let sealed = fcntl_get_seals(memory)?.contains(SEALS);
        if !sealed || fstat(memory)?.st_size != size as i64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not the memory of a port"));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the address is the kernel's choice, so no mapping of ours is replaced.
        let start =
            unsafe { mmap(ptr::null_mut(), size, protection, MapFlags::SHARED, memory, 0)? };
        // Made first, so that the mapping goes again if the next call fails.
        let shared = Self(NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?);
        // SAFETY: these `size` bytes are the mapping just made; the advice changes what fork
        // copies, not them.
        unsafe { madvise(start, size, Advice::LinuxDontFork)? };
        Ok(shared)
    }
}

impl Deref for Shared {
    type Target = Region;

    fn deref(&self) -> &Region {
        // SAFETY: `map` made a mapping of `size_of::<Region>()` bytes at this address, page-aligned
        // and thus aligned for `Region`, readable and writable; seals keep the memory behind it
        // from shrinking, and only `drop` unmaps it. Every bit pattern is a valid `Region`, and all
        // its fields are atomics, so that the other process's writes are no data race.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, of that size; `&mut self` shows that no reference into
        // it is left. It cannot fail: address and length are those of a whole mapping.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), mem::size_of::<Region>()) };
    }
}

/// Without these, others could write the memory of a [`Page`], or cut it short.
const READ_ONLY: SealFlags = SEALS.union(SealFlags::FUTURE_WRITE);

/// One number in memory that other processes can read: written by the process that made it alone.
#[derive(Debug)]
pub(crate) struct Page(NonNull<AtomicU64>);

// SAFETY: it gives nothing but `&AtomicU64`, which any thread may use; the mapping belongs to the
// process.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    const BYTES: usize = 4096;

    /// A new one, zero and writable here, and the memory for others to map.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("dewar-generation", flags)?;
        ftruncate(&memory, Self::BYTES as u64)?;
        let page = Self::map_for(memory.as_fd(), ProtFlags::READ | ProtFlags::WRITE)?;
        // The mapping made stays writable; no other can be.
        fcntl_add_seals(&memory, READ_ONLY)?;
        Ok((page, memory))
    }

    /// Maps what another process made, to read it.
    ///
    /// # Errors
    ///
    /// `InvalidData` for memory of another size, or that others than its maker could write or
    /// shorten.
    pub(crate) fn map(memory: BorrowedFd<'_>) -> io::Result<Self> {
        let sealed = fcntl_get_seals(memory)?.contains(READ_ONLY);
        if !sealed || fstat(memory)?.st_size != Self::BYTES as i64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not the memory of a counter"));
        }
        Self::map_for(memory, ProtFlags::READ)
    }

    fn map_for(memory: BorrowedFd<'_>, protection: ProtFlags) -> io::Result<Self> {
        // SAFETY: the address is the kernel's choice, so no mapping of ours is replaced.
        let start =
            unsafe { mmap(ptr::null_mut(), Self::BYTES, protection, MapFlags::SHARED, memory, 0)? };
        Ok(Self(NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?))
    }
}

impl Deref for Page {
    type Target = AtomicU64;

    fn deref(&self) -> &AtomicU64 {
        // SAFETY: `map_for` mapped `BYTES` readable bytes at this address, page-aligned; `new` and
        // `map` make sure that the memory behind them is that long and cannot shrink, and only
        // `drop` unmaps them. Any bits are a valid `AtomicU64`. Where the mapping is read-only, its
        // holder only loads (relaxed, as std::sync::atomic demands there).
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map_for`, of that size; `&mut self` shows that no reference
        // into it is left. It cannot fail: address and length are those of a whole mapping.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), Self::BYTES) };
    }
}

/// A descriptor of the process that connected this socket (Linux 6.5).
///
/// # Errors
///
/// `ESRCH` if it has been reaped already; whatever else the system says.
pub(crate) fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let fd: RawFd = option(socket, libc::SO_PEERPIDFD, -1)?;
    if fd < 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    // SAFETY: the call has just made this descriptor (not negative) for us; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The number and the user of the process that connected this socket; 0 for a process of a
/// namespace that is not visible from here.
///
/// # Errors
///
/// Whatever the system says.
pub(crate) fn peer_credentials(socket: BorrowedFd<'_>) -> io::Result<(i32, u32)> {
    let nobody = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    option(socket, libc::SO_PEERCRED, nobody).map(|who| (who.pid, who.uid))
}

/// What the other end of a connected unix socket is bound to, as in unix(7): a path, or 0 and an
/// abstract name; empty for nothing. An abstract name of no bytes is not nothing, which rustix does
/// not tell apart.
///
/// # Errors
///
/// `ENOTCONN`; `InvalidInput` for a socket of another family; whatever else the system says.
pub(crate) fn peer_name(socket: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut address = libc::sockaddr_un { sun_family: 0, sun_path: [0; 108] };
    let mut len = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `address`, which has that size, and the
    // length to `len`; both outlive the call. `sockaddr_un` consists of integers, valid whatever is
    // written.
    let got =
        unsafe { libc::getpeername(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut len) };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    if i32::from(address.sun_family) != libc::AF_UNIX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a unix socket"));
    }
    let len = (len as usize).saturating_sub(mem::offset_of!(libc::sockaddr_un, sun_path));
    let mut name: Vec<u8> = address.sun_path.iter().take(len).map(|byte| *byte as u8).collect();
    if name.first().is_some_and(|first| *first != 0) {
        name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
    }
    Ok(name)
}

/// A socket's option, of a type that any bytes are valid for: integers, or a struct of them.
fn option<T: Copy + 'static>(socket: BorrowedFd<'_>, name: i32, mut value: T) -> io::Result<T> {
    let mut len = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `value`, which has that size, and the length
    // to `len`; both outlive the call. `T` is `RawFd` or `ucred` here: integers, valid whatever is
    // written.
    let got = unsafe {
        let value = (&raw mut value).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, value, &raw mut len)
    };
    if got == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// What a packet brought, beside its bytes.
#[derive(Debug, Default)]
pub(crate) struct Packet {
    /// Bytes received.
    pub(crate) len: usize,
    /// More was sent than there was room for, of bytes or descriptors.
    pub(crate) truncated: bool,
    /// The number of the process that sent it, as the kernel says; 0 for one that is not visible
    /// from here, and `None` if the socket was not told to ask.
    pub(crate) sender: Option<i32>,
    /// The descriptors in it; they are closed on exec.
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Room for the control messages of a packet, aligned for their headers.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// `CMSG_SPACE` of the most descriptors and of one `ucred`: a header of 16 bytes before each, in
/// steps of 8.
const CONTROL_BYTES: usize = 16 + 4 * MAX_DESCRIPTORS + 8 + 16 + 16;

/// Receives one packet into `head` and then `body`. Ends with 0 bytes when the other side is gone.
///
/// # Errors
///
/// `EAGAIN` after the socket's timeout, or at once with `MSG_DONTWAIT` in `flags`; whatever else
/// the system says.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    head: &mut [u8],
    body: &mut [u8],
    flags: i32,
) -> io::Result<Packet> {
    let mut parts = [IoSliceMut::new(head), IoSliceMut::new(body)];
    let mut control = Control([0; CONTROL_BYTES]);
    // SAFETY: `msghdr` consists of integers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr().cast();
    message.msg_iovlen = parts.len();
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = CONTROL_BYTES;
    let flags = flags | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: `message` names `parts`, which have the layout of `iovec` (as `IoSliceMut`
    // guarantees) over two exclusively borrowed slices, and `control` with its size; all outlive
    // the call.
    let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    let truncated = message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
    let mut packet = Packet { len, truncated, ..Packet::default() };
    take_control(&message, &mut packet);
    Ok(packet)
}

/// Moves the sender and the descriptors out of a message that `recvmsg` has just filled.
fn take_control(message: &libc::msghdr, packet: &mut Packet) {
    // SAFETY: `message.msg_control` points to the live, aligned buffer of `receive`, and the kernel
    // has set `msg_controllen` to what it filled of it.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: the pointer is null or that of a whole header inside the buffer, as the kernel wrote
    // it.
    while let Some(header) = unsafe { next.as_ref() } {
        // SAFETY: as above; the result points behind the header, to `cmsg_len` less the header's
        // bytes.
        let data = unsafe { libc::CMSG_DATA(header) };
        let bytes = header.cmsg_len - mem::size_of::<libc::cmsghdr>();
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => {
                // SAFETY: the kernel puts one `ucred` into this kind of message; integers, read
                // unaligned.
                let who = unsafe { data.cast::<libc::ucred>().read_unaligned() };
                packet.sender = Some(who.pid);
            }
            (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                for place in 0..bytes / mem::size_of::<RawFd>() {
                    // SAFETY: `place` is below the number of descriptors that this message holds.
                    let at = unsafe { data.cast::<RawFd>().add(place) };
                    // SAFETY: `at` lies inside the message, as shown; an integer, read unaligned.
                    let fd = unsafe { at.read_unaligned() };
                    // SAFETY: the kernel has just installed this descriptor for us, and names it
                    // once.
                    packet.descriptors.push(unsafe { OwnedFd::from_raw_fd(fd) });
                }
            }
            _ => {}
        }
        // SAFETY: `header` is a header of `message`, whose buffer is still as the kernel left it.
        next = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_can_still_shrink_is_not_mapped() {
        let memory = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("memory");
        ftruncate(&memory, mem::size_of::<Region>() as u64).expect("its size");
        assert!(Shared::map(memory.as_fd()).is_err());
        fcntl_add_seals(&memory, SEALS).expect("seals");
        assert!(Shared::map(memory.as_fd()).is_ok());
    }

    #[test]
    fn memory_of_another_size_is_not_mapped() {
        let memory = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("memory");
        ftruncate(&memory, 4096).expect("its size");
        fcntl_add_seals(&memory, SEALS).expect("seals");
        assert!(Shared::map(memory.as_fd()).is_err());
    }
}
