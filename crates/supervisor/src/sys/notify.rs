//! Seccomp user notification: receive a trapped call, answer it (seccomp_unotify(2)).
#![allow(unsafe_code)]

use super::closing;
use crate::one_cpu;
use rustix::io::{Errno, Result};
use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
};

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` of `linux/seccomp.h`: both sides hand over on one CPU.
const SYNC_WAKE_UP: libc::c_ulong = 1;

/// The monitor's end of a seccomp filter.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    /// Both sides are woken on one CPU.
    on_one_cpu: AtomicBool,
}

/// A system call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Notification {
    /// Cookie of this call; worthless once the caller is gone.
    pub id: u64,
    /// The calling thread, in the monitor's PID namespace.
    pub tid: u32,
    /// System call number.
    pub nr: i32,
    /// Its arguments, as the registers held them.
    pub args: [u64; 6],
}

impl Listener {
    /// The end that seccomp(2) has returned for a filter with `SECCOMP_FILTER_FLAG_NEW_LISTENER`.
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd, on_one_cpu: AtomicBool::new(false) }
    }

    /// Asks the kernel to wake both sides on the CPU of the other; `false` where it cannot (before
    /// Linux 6.6).
    pub fn hand_over_on_one_cpu(&self) -> bool {
        // SAFETY: the third argument of this request is an integer, not a pointer.
        let code = unsafe {
            libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP)
        };
        self.on_one_cpu.store(code == 0, Ordering::Relaxed);
        code == 0
    }

    /// Waits for the next call. `Ok(None)` when the caller died before its call was
    /// received.
    pub fn receive(&self) -> Result<Option<Notification>> {
        // SAFETY: `seccomp_notif` is plain integers, for which all zeroes is a value; the kernel
        // demands it zeroed.
        let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the request writes one `seccomp_notif`, which `raw` is.
        let code = unsafe {
            libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut raw)
        };
        match check(code) {
            Ok(_) => {
                one_cpu::heard(raw.pid);
                Ok(Some(Notification {
                    id: raw.id,
                    tid: raw.pid,
                    nr: raw.data.nr,
                    args: raw.data.args,
                }))
            }
            Err(Errno::INTR) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the caller still waits: `false` means that nothing may be done in its name any more.
    pub fn is_valid(&self, id: u64) -> bool {
        // SAFETY: the request reads one `u64`, which `id` is.
        let code = unsafe {
            libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id)
        };
        code == 0
    }

    /// Lets the call run as the caller made it. The caller may still change what its pointers point
    /// to.
    pub fn send_continue(&self, id: u64) -> Result<()> {
        self.send(libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        })
    }

    /// Ends the call with a result.
    pub fn send_result(&self, id: u64, result: Result<i64>) -> Result<()> {
        let (val, error) = match result {
            Ok(val) => (val, 0),
            Err(errno) => (0, -errno.raw_os_error()),
        };
        self.send(libc::seccomp_notif_resp { id, val, error, flags: 0 })
    }

    /// Gives the caller `fd` at the lowest free number, and ends the call with that number. Where
    /// both sides wake each other (since Linux 6.6), the caller has the only descriptor by then:
    /// when it closes a file, locks go, watches are told, and what was written can be executed.
    pub fn hand_over(&self, call: &Notification, fd: OwnedFd, cloexec: bool) -> Result<()> {
        // The caller may be gone, or have closed it already.
        if self.on_one_cpu.load(Ordering::Relaxed) {
            let given = one_cpu::give(self, call, fd.as_fd(), cloexec);
            closing::close(fd);
            self.send_result(call.id, given.map(i64::from))
        } else {
            let sent = self.send_fd(call.id, fd.as_fd(), cloexec);
            closing::close(fd);
            sent.or_else(|error| self.send_result(call.id, Err(error)))
        }
    }

    /// Gives the caller a duplicate of `fd` at the lowest free number, and ends the call with that
    /// number, in one step.
    pub fn send_fd(&self, id: u64, fd: BorrowedFd<'_>, cloexec: bool) -> Result<()> {
        self.add_fd(&libc::seccomp_notif_addfd {
            id,
            flags: libc::SECCOMP_ADDFD_FLAG_SEND as u32,
            srcfd: fd.as_raw_fd() as u32,
            newfd: 0,
            newfd_flags: if cloexec { libc::O_CLOEXEC as u32 } else { 0 },
        })
        .map(drop)
    }

    /// Gives the caller a duplicate of `fd` at the lowest free number, which is returned; the call
    /// goes on waiting.
    pub fn give_fd(&self, id: u64, fd: BorrowedFd<'_>, cloexec: bool) -> Result<i32> {
        self.add_fd(&libc::seccomp_notif_addfd {
            id,
            flags: 0,
            srcfd: fd.as_raw_fd() as u32,
            newfd: 0,
            newfd_flags: if cloexec { libc::O_CLOEXEC as u32 } else { 0 },
        })
    }

    fn add_fd(&self, request: &libc::seccomp_notif_addfd) -> Result<i32> {
        // SAFETY: the kernel reads one `seccomp_notif_addfd`, which `request` is. Its source
        // descriptor is one that the callers above borrow; a number that means nothing is refused.
        let code = unsafe {
            libc::ioctl(
                self.fd.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ADDFD,
                std::ptr::from_ref(request),
            )
        };
        check(code)
    }

    /// Gives the caller a duplicate of `fd`, in the place of its descriptor `number`, and ends the
    /// call.
    pub fn send_fd_as(
        &self,
        id: u64,
        fd: BorrowedFd<'_>,
        number: i32,
        cloexec: bool,
    ) -> Result<()> {
        self.add_fd(&libc::seccomp_notif_addfd {
            id,
            flags: (libc::SECCOMP_ADDFD_FLAG_SEND | libc::SECCOMP_ADDFD_FLAG_SETFD) as u32,
            srcfd: fd.as_raw_fd() as u32,
            newfd: number as u32,
            newfd_flags: if cloexec { libc::O_CLOEXEC as u32 } else { 0 },
        })
        .map(drop)
    }

    fn send(&self, mut response: libc::seccomp_notif_resp) -> Result<()> {
        // SAFETY: the request reads one `seccomp_notif_resp`, which `response` is.
        let code = unsafe {
            libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response)
        };
        check(code).map(drop)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn check(code: libc::c_int) -> Result<libc::c_int> {
    if code >= 0 {
        return Ok(code);
    }
    // `last_os_error` holds the errno of the call before, which failed.
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}
