//! The kernel's interface: arenas, programs, runs. The only place of this target that the compiler
//! does not check.
//!
//! An arena is mapped at a multiple of 4 GiB, so that the low 32 bits of an address, which is what
//! programs use, are the distance from its start: addresses begin at 0, as they do on the isolated
//! target.

#![allow(unsafe_code)]

use super::asm::Insn;
use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr::{self, NonNull},
};

const MAP_CREATE: libc::c_long = 0;
const PROG_LOAD: libc::c_long = 5;
const PROG_RUN: libc::c_long = 10;
const TYPE_ARENA: u32 = 33;
const TYPE_SYSCALL: u32 = 31;
const MMAPABLE: u32 = 1 << 10;
const SLEEPABLE: u32 = 1 << 4;
const ALIGN: usize = 1 << 32;
/// How often a program is loaded whose verification a signal has ended (`EAGAIN`).
const ATTEMPTS: u32 = 100;
pub(super) const PAGE: u64 = 4096;

/// `union bpf_attr` for `BPF_MAP_CREATE`, as far as it is used; the kernel takes what is missing
/// as 0.
#[repr(C)]
#[derive(Default)]
struct MapAttr {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
}

/// The same for `BPF_PROG_LOAD`.
#[repr(C)]
#[derive(Default)]
struct ProgAttr {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
}

/// The same for `BPF_PROG_TEST_RUN`.
#[repr(C)]
#[derive(Default)]
struct RunAttr {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    /// The kernel demands that what follows the last field be 0.
    unused: u32,
}

/// What host and program tell each other around a run. The program writes it back.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    /// In: where to start. Out: why the program left.
    pub(super) at: u64,
    /// In: the result of a host function. Out: the result of the function.
    pub(super) value: u64,
    /// The frame, as an address.
    pub(super) frame: u64,
    /// Iterations until the program leaves to let the host look at the clock.
    pub(super) fuel: u64,
    /// Bytes of the plugin's memory.
    pub(super) memory: u64,
    /// 0, which the kernel's verifier does not know.
    pub(super) zero: u64,
}

/// Memory that the program in the kernel and this process share.
pub(super) struct Arena {
    fd: OwnedFd,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: `base` leads to a mapping that the value owns and that belongs to no thread.
unsafe impl Send for Arena {}

impl Arena {
    /// An arena of `len` bytes, a multiple of the page size, without any page yet.
    pub(super) fn new(len: u64) -> io::Result<Self> {
        let attr = MapAttr {
            map_type: TYPE_ARENA,
            max_entries: u32::try_from(len / PAGE).map_err(io::Error::other)?,
            map_flags: MMAPABLE,
            map_name: *b"ecode_arena\0\0\0\0\0",
            ..Default::default()
        };
        // SAFETY: `MapAttr` is the part of `union bpf_attr` that this command reads; it holds no
        // addresses.
        let fd = unsafe { bpf(MAP_CREATE, ptr::from_ref(&attr).cast(), size_of::<MapAttr>()) }?;
        // SAFETY: the kernel just made this descriptor for us, and no one else knows it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let base = map_aligned(&fd, len)?;
        Ok(Self { fd, base, len })
    }

    /// Gives the addresses from `from` to `to` pages, so that the program can use them.
    pub(super) fn populate(&mut self, from: u64, to: u64) -> io::Result<()> {
        let from = from / PAGE * PAGE;
        let len = to.next_multiple_of(PAGE).saturating_sub(from);
        let (from, len) = (from as usize, len as usize);
        if from.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let start = self.base.as_ptr().wrapping_add(from).cast();
        // SAFETY: the range lies in the mapping, as was just checked; the advice only adds pages to
        // it.
        let done = unsafe { libc::madvise(start, len, libc::MADV_POPULATE_WRITE) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Copies `bytes` to `addr`; whether they fit.
    pub(super) fn write(&mut self, addr: u64, bytes: &[u8]) -> bool {
        let Some(to) = self.place(addr, bytes.len()) else { return false };
        // SAFETY: `place` has checked that the bytes from `to` on lie in the mapping. No program
        // runs now: runs borrow the arena mutably and end before they return. `bytes` is not in the
        // mapping, of which no reference is ever made.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        true
    }

    /// Copies the bytes at `addr` to `out`; whether they lie in the arena.
    pub(super) fn read(&self, addr: u64, out: &mut [u8]) -> bool {
        let Some(from) = self.place(addr, out.len()) else { return false };
        // SAFETY: as for `write`.
        unsafe { ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        true
    }

    /// Where `len` bytes at `addr` are in this process.
    fn place(&self, addr: u64, len: usize) -> Option<*mut u8> {
        let at = usize::try_from(addr).ok()?;
        at.checked_add(len).filter(|end| *end <= self.len)?;
        Some(self.base.as_ptr().wrapping_add(at))
    }

    /// Loads a program over this arena; its first instruction names it.
    pub(super) fn load(&self, insns: &[Insn], log: &mut [u8]) -> io::Result<Program> {
        let mut insns = insns.to_vec();
        if let Some(first) = insns.first_mut() {
            *first = first.with_descriptor(self.fd.as_raw_fd());
        }
        let attr = ProgAttr {
            prog_type: TYPE_SYSCALL,
            insn_cnt: insns.len() as u32,
            insns: insns.as_ptr() as u64,
            license: c"Apache-2.0".as_ptr() as u64,
            log_level: u32::from(!log.is_empty()),
            log_size: log.len() as u32,
            log_buf: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
            prog_flags: SLEEPABLE,
            prog_name: *b"ecode\0\0\0\0\0\0\0\0\0\0\0",
            ..Default::default()
        };
        let load = || {
            // SAFETY: `ProgAttr` is the part of `union bpf_attr` that this command reads. Its
            // addresses lead to `insn_cnt` instructions, a C string and `log_size` bytes that may
            // be written; all outlive the call.
            unsafe { bpf(PROG_LOAD, ptr::from_ref(&attr).cast(), size_of::<ProgAttr>()) }
        };
        let is_interrupted = |error: &io::Error| error.raw_os_error() == Some(libc::EAGAIN);
        let mut loaded = load();
        for _ in 1..ATTEMPTS {
            if !loaded.as_ref().is_err_and(is_interrupted) {
                break;
            }
            loaded = load();
        }
        let fd = loaded?;
        // SAFETY: the kernel just made this descriptor for us, and no one else knows it.
        Ok(Program(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// Runs `program` until it leaves.
    pub(super) fn run(&mut self, program: &Program, context: &mut Context) -> io::Result<()> {
        let attr = RunAttr {
            prog_fd: program.0.as_raw_fd() as u32,
            ctx_size_in: size_of::<Context>() as u32,
            ctx_in: ptr::from_mut(context) as u64,
            ..Default::default()
        };
        // SAFETY: `RunAttr` is the part of `union bpf_attr` that this command reads. `ctx_in` leads
        // to `ctx_size_in` bytes, which the kernel reads and writes back; every bit pattern is a
        // `Context`. The program itself has passed the kernel's verifier: it reaches its context
        // and its arena.
        unsafe { bpf(PROG_RUN, ptr::from_ref(&attr).cast(), size_of::<RunAttr>()) }.map(drop)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping has this place and length, the value owns it, and no reference into
        // it exists.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// A program that the kernel has accepted.
pub(super) struct Program(OwnedFd);

/// Maps all of the arena at a multiple of 4 GiB.
fn map_aligned(fd: &OwnedFd, len: usize) -> io::Result<NonNull<u8>> {
    let (none, private) =
        (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a new mapping where the kernel finds room touches nothing that exists.
    let room = unsafe { libc::mmap(ptr::null_mut(), ALIGN + len, none, private, -1, 0) };
    if room == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = room.addr().next_multiple_of(ALIGN);
    let (before, after) = (start - room.addr(), room.addr() + ALIGN - start);
    let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
    let place = room.with_addr(start);
    // SAFETY: the range replaced lies in `room`, which is ours and holds nothing: `start` is less
    // than `ALIGN` above its begin, and `len` more bytes follow.
    let base = unsafe { libc::mmap(place, len, access, shared, fd.as_raw_fd(), 0) };
    let result = match base {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        base => NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    };
    let after = if result.is_ok() { after } else { after + len };
    let tail = room.with_addr(room.addr() + ALIGN + len - after);
    for (start, len) in [(room, before), (tail, after)] {
        if len > 0 {
            // SAFETY: these are the parts of `room` that the arena does not take.
            unsafe { libc::munmap(start, len) };
        }
    }
    result
}

/// # Safety
///
/// `attr` must be what `command` takes, `len` bytes long, and the addresses in it good for what it
/// does.
unsafe fn bpf(command: libc::c_long, attr: *const u8, len: usize) -> io::Result<i64> {
    // SAFETY: as the caller promises.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attr, len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
