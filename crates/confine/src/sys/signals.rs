//! Signals: masks, dispositions, and receiving them as events.

use super::owned;
use rustix::{io::Errno, process::Pid};
use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
};

/// A set of signals.
#[derive(Clone, Copy)]
pub(crate) struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// The set of `signals`; numbers that are no signals are left out.
    pub(crate) fn of(signals: &[i32]) -> Self {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` initialises the whole set it is given.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        for &signal in signals {
            // SAFETY: the set was initialised above; a bad number is answered with EINVAL.
            unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
        }
        // SAFETY: initialised by `sigemptyset`.
        Self(unsafe { set.assume_init() })
    }

    /// Blocks these signals in the calling thread, besides those blocked already.
    pub(crate) fn block(&self) -> Self {
        self.change_mask(libc::SIG_BLOCK)
    }

    /// Lets these signals through in the calling thread.
    pub(crate) fn unblock(&self) -> Self {
        self.change_mask(libc::SIG_UNBLOCK)
    }

    /// Makes this set the mask of the calling thread.
    pub(crate) fn install(&self) -> Self {
        self.change_mask(libc::SIG_SETMASK)
    }

    /// Changes the mask of the calling thread and returns the one before.
    fn change_mask(&self, how: i32) -> Self {
        let mut before = Self::of(&[]);
        // SAFETY: both sets are initialised and live until the call returns; the kernel never
        // blocks the signals that the C library needs for itself. `how` is one of the three
        // valid values, so the call cannot fail.
        unsafe { libc::pthread_sigmask(how, &raw const self.0, &raw mut before.0) };
        before
    }
}

/// What came in on a [`SignalFd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signalled {
    /// The signal's number.
    pub(crate) signal: i32,
    /// Who sent it, in this process's pid namespace; `None` if the kernel did (the terminal).
    pub(crate) sender: Option<Pid>,
}

/// Receives blocked signals as readable events.
pub(crate) struct SignalFd(OwnedFd);

impl SignalFd {
    /// Receives `set`, which the caller has blocked.
    pub(crate) fn new(set: &SignalSet) -> Result<Self, Errno> {
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: `set` is initialised and only read; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &raw const set.0, flags) };
        Ok(Self(owned(fd.into())?))
    }

    /// The next signal; `None` if none is pending.
    pub(crate) fn next(&self) -> Option<Signalled> {
        let mut bytes = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let read = rustix::io::read(&self.0, &mut bytes).ok()?;
        if read != bytes.len() {
            return None;
        }
        // SAFETY: `bytes` holds a whole `signalfd_siginfo` (the length was checked), which
        // consists of integers only; the read is unaligned.
        let info = unsafe { bytes.as_ptr().cast::<libc::signalfd_siginfo>().read_unaligned() };
        // Codes up to zero (SI_USER, SI_QUEUE, SI_TKILL …) are those that a process can send.
        let by_process = info.ssi_code <= 0;
        let sender = if by_process { Pid::from_raw(info.ssi_pid.cast_signed()) } else { None };
        Some(Signalled { signal: info.ssi_signo.cast_signed(), sender })
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Gives `signal` its default action back, or ignores it.
pub(crate) fn set_disposition(signal: i32, ignore: bool) {
    let handler = if ignore { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: neither SIG_IGN nor SIG_DFL runs code of this program.
    unsafe { libc::signal(signal, handler) };
}

/// Ignores what a terminal sends to who reads or changes it in the background: the read fails, and
/// the change is made. Otherwise all of the group would be stopped.
pub fn ignore_background() {
    for signal in [libc::SIGTTIN, libc::SIGTTOU] {
        set_disposition(signal, true);
    }
}

static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether this process was started with `SIGPIPE` ignored (Rust ignores it before `main`).
pub(crate) fn sigpipe_was_ignored() -> bool {
    SIGPIPE_WAS_IGNORED.load(Ordering::Relaxed)
}

extern "C" fn note_sigpipe() {
    SIGPIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// Whether this process ignores `signal`.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null `act` only asks; the answer is written to `action`, which is large enough.
    let answer = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all-zero bytes are a valid `sigaction` (integers, and a nullable pointer), and the
    // call above wrote a valid one if it succeeded.
    let action = unsafe { action.assume_init() };
    answer == 0 && action.sa_sigaction == libc::SIG_IGN
}

// SAFETY: the C start-up code calls each function of this section once, single-threaded, before
// `main` and before Rust's own start-up; `note_sigpipe` uses nothing that those have to prepare,
// and its type is that of an entry (it ignores the arguments that glibc passes).
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_SIGPIPE: extern "C" fn() = note_sigpipe;
