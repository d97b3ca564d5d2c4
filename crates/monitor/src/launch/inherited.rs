//! What Dewar got from whoever started it, and hands on to the command unchanged.

use std::os::fd::RawFd;

use crate::sys::launch as sys;

/// Signal mask, `SIGPIPE` disposition and open descriptors as the caller of Dewar left them.
///
/// As with a plain exec, every descriptor that the caller left open passes through to the
/// command; none that Dewar opens itself does.
#[derive(Clone)]
pub struct Inherited {
    descriptors: Vec<RawFd>,
    pub(super) mask: sys::SignalSet,
    sigpipe_ignored: bool,
    sigchld_ignored: bool,
}

impl Inherited {
    /// Notes the present state. Call it first thing in `main`: descriptors that the program
    /// opened before, without close-on-exec, count as inherited.
    #[must_use]
    pub fn capture() -> Self {
        Self {
            descriptors: sys::inheritable(&open_descriptors()),
            mask: sys::SignalSet::of(&[]).block(),
            sigpipe_ignored: sys::sigpipe_was_ignored(),
            sigchld_ignored: sys::is_ignored(libc::SIGCHLD),
        }
    }

    /// Gives signals back as they were; everything else survives an exec by itself.
    pub(super) fn restore_signals(&self) {
        sys::set_disposition(libc::SIGPIPE, self.sigpipe_ignored);
        sys::set_disposition(libc::SIGCHLD, self.sigchld_ignored);
        self.mask.install();
    }

    /// Lets nothing but the inherited descriptors survive the exec.
    pub(super) fn pass_descriptors(&self) -> Result<(), rustix::io::Errno> {
        // INVARIANT: a number that was inherited, closed since and used again for something of
        // ours is close-on-exec by now, so that `inheritable` leaves it out.
        sys::pass_only(&sys::inheritable(&self.descriptors))
    }

    /// Closes this process's copies of the inherited descriptors, and silences the standard
    /// input and output, so that pipes end when the command ends or closes them.
    pub(super) fn let_go(&self) -> Result<(), rustix::io::Errno> {
        sys::close_inherited(&self.descriptors);
        sys::silence(&[0, 1])
    }
}

/// The open descriptors above the standard streams.
fn open_descriptors() -> Vec<RawFd> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let number =
        |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    entries.filter_map(number).filter(|&fd: &RawFd| fd > 2).collect()
}
