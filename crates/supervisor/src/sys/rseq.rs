//! Restartable sequences of a stopped thread (ptrace(2), rseq(2)).
#![allow(unsafe_code)]

use super::ptrace::last_errno;
use rustix::io::{Errno, Result};

/// Of `linux/ptrace.h`.
const GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;

/// Where a thread has told the kernel of its restartable sequence (`struct rseq`), and by what.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RseqArea {
    /// The address of its `struct rseq`.
    pub(crate) address: u64,
    /// The size that it was registered with.
    pub(crate) len: u32,
    /// What stands before the code that goes on for an interrupted sequence.
    pub(crate) signature: u32,
    flags: u32,
    pad: u32,
}

/// The one of a stopped thread; `None` if it has registered none, or the kernel knows of none.
///
/// # Errors
///
/// Those of ptrace(2): `EIO` where the kernel has sequences, and does not tell (before Linux 5.13).
pub(crate) fn rseq_area(tid: u32) -> Result<Option<RseqArea>> {
    let mut area = RseqArea::default();
    let size = size_of::<RseqArea>();
    // SAFETY: GET_RSEQ_CONFIGURATION writes at most `addr` bytes, of which `area` has as many; it
    // is plain integers.
    let got =
        unsafe { libc::ptrace(GET_RSEQ_CONFIGURATION, tid as libc::pid_t, size, &raw mut area) };
    if got != -1 {
        return Ok((area.address != 0).then_some(area));
    }
    match last_errno() {
        Errno::IO if !has_sequences() => Ok(None),
        error => Err(error),
    }
}

/// Whether the kernel has restartable sequences, for whoever is under the filters of this process.
fn has_sequences() -> bool {
    const UNREGISTER: u32 = 1;
    // SAFETY: nobody has registered an area at null, so that nothing is changed by taking it back.
    let code = unsafe { libc::syscall(libc::SYS_rseq, 0_usize, 0_u32, UNREGISTER, 0_u32) };
    code == 0 || last_errno() != Errno::NOSYS
}
