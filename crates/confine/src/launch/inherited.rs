//! What Dewar got from whoever started it, and hands on to the command unchanged.

use proc::Proc;
use rustix::{
    fs::{FileType, OFlags, fstat, makedev},
    io::Errno,
    termios::tcgetsid,
};
use std::os::fd::RawFd;

use super::Given;
use crate::sys;

/// Signal mask, `SIGPIPE` disposition and open descriptors as the caller of Dewar left them.
///
/// As with a plain exec, every descriptor that the caller left open passes through to the command,
/// but for three kinds:
///
/// - Directories, and descriptors that are only a place (`O_PATH`). They lie in the file system as
///   it is outside, and would lead around what the view covers.
/// - Sockets that can still choose a peer. Where nothing else can send to an address, sending is
///   not decided.
/// - What Dewar has opened itself.
#[derive(Clone)]
pub struct Inherited {
    descriptors: Vec<RawFd>,
    /// Those that are not handed on.
    withheld: Vec<Withheld>,
    pub(super) mask: sys::SignalSet,
    sigpipe_ignored: bool,
    sigchld_ignored: bool,
    sigxfsz_ignored: bool,
}

/// A descriptor that is not handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// Its number.
    pub fd: RawFd,
    /// What would be wrong with it, as the rest of a sentence about it.
    pub why: &'static str,
}

impl Withheld {
    /// What keeps `fd` from being handed on, if anything does.
    fn of(fd: RawFd) -> Option<Self> {
        let why = if is_place(fd) {
            "it is of a directory, or only of a place, and would lead around the profile"
        } else if sys::is_open_socket(fd) {
            "it is of a socket that is not a stream with a peer, and would lead to others than the profile names"
        } else {
            return None;
        };
        Some(Self { fd, why })
    }
}

impl Inherited {
    /// Notes the present state. Call it first thing in `main`: descriptors that the program
    /// opened before, without close-on-exec, count as inherited.
    #[must_use]
    pub fn capture() -> Self {
        let sigxfsz_ignored = sys::is_ignored(libc::SIGXFSZ);
        // A limit on the length of files (`ulimit -f`) must not end the monitor: what it cannot
        // write is an error.
        sys::set_disposition(libc::SIGXFSZ, true);
        let streams = [0, 1, 2].into_iter().filter_map(Withheld::of);
        let mut descriptors = sys::inheritable(&open_descriptors());
        let withheld: Vec<Withheld> =
            streams.chain(descriptors.iter().copied().filter_map(Withheld::of)).collect();
        descriptors.retain(|fd| withheld.iter().all(|it| it.fd != *fd));
        Self {
            descriptors,
            withheld,
            mask: sys::SignalSet::of(&[]).block(),
            sigpipe_ignored: sys::sigpipe_was_ignored(),
            sigchld_ignored: sys::is_ignored(libc::SIGCHLD),
            sigxfsz_ignored,
        }
    }

    /// Has no unix socket among them bring descriptors, which could be of anything: one in whose
    /// queue some wait is not handed on, and later ones are refused (by Linux 6.16 and later).
    pub fn refuse_descriptors(&mut self) {
        let is_withheld = |fd: &RawFd| self.withheld.iter().any(|it| it.fd == *fd);
        let all = (0..3).chain(self.descriptors.iter().copied()).filter(|fd| !is_withheld(fd));
        // In this order, so that none comes in between.
        let brings = |fd: &RawFd| sys::receive_no_descriptors(*fd) && may_bring_descriptors(*fd);
        let why = "descriptors wait in its queue, and could be of anything";
        let brought: Vec<Withheld> = all.filter(brings).map(|fd| Withheld { fd, why }).collect();
        self.descriptors.retain(|fd| brought.iter().all(|it| it.fd != *fd));
        self.withheld.extend(brought);
    }

    /// The descriptors that are left open and not handed on. A standard stream among them is
    /// `/dev/null` to the command.
    #[must_use]
    pub fn withheld(&self) -> &[Withheld] {
        &self.withheld
    }

    /// A descriptor of the command behind which somebody may be who writes to the controlling
    /// terminal while the command stands still, and what it is of: of anything but that terminal, a
    /// file and `/dev/null`.
    #[must_use]
    pub fn leading_past_terminal(&self) -> Option<(RawFd, &'static str)> {
        let streams = (0..3).filter(|fd| self.withheld.iter().all(|it| it.fd != *fd));
        let mut all = streams.chain(self.descriptors.iter().copied());
        all.find_map(|fd| Some((fd, past_terminal(fd)?)))
    }

    /// What is handed on.
    pub(crate) fn given(&self) -> Result<Given, Errno> {
        let streams = (0..3).filter(|fd| self.withheld.iter().all(|it| it.fd != *fd));
        let all = streams.chain(self.descriptors.iter().copied()).map(sys::duplicate);
        // A closed one gives nothing.
        let given = Given::behind(all.filter(|fd| !matches!(fd, Err(Errno::BADF))))?;
        // The command opens it by `/dev/tty`.
        let own = Proc::open().and_then(|proc| proc.stat(std::process::id()));
        if let Some(path) = own.ok().and_then(|own| own.terminal_path()) {
            given.terminals.add_controlling(&path);
        }
        Ok(given)
    }

    /// Gives signals back as they were; everything else survives an exec by itself.
    pub(super) fn restore_signals(&self) {
        sys::set_disposition(libc::SIGPIPE, self.sigpipe_ignored);
        sys::set_disposition(libc::SIGCHLD, self.sigchld_ignored);
        sys::set_disposition(libc::SIGXFSZ, self.sigxfsz_ignored);
        self.mask.install();
    }

    /// Lets nothing but the inherited descriptors survive the exec.
    pub(super) fn pass_descriptors(&self) -> Result<(), rustix::io::Errno> {
        // INVARIANT: a number that was inherited, closed since and used again for something of
        // ours is close-on-exec by now, so that `inheritable` leaves it out.
        let streams = self.withheld.iter().map(|it| it.fd);
        let streams: Vec<RawFd> = streams.filter(|fd| *fd <= 2).collect();
        if !streams.is_empty() {
            sys::silence(&streams)?;
        }
        for fd in (0..3).chain(self.descriptors.iter().copied()) {
            sys::receive_no_descriptors(fd);
        }
        // A program sees by that where nobody reads or writes.
        sys::pass_only(&sys::inheritable(&self.descriptors), &sys::closed_streams())
    }

    /// Closes this process's copies of the inherited descriptors, and silences the standard
    /// input and output, so that pipes end when the command ends or closes them.
    pub(super) fn let_go(&self) -> Result<(), rustix::io::Errno> {
        sys::close_inherited(&self.descriptors);
        sys::silence(&[0, 1])
    }
}

/// Whether a descriptor is of a directory, or only of a place; yes when in doubt about one that is
/// open.
fn is_place(fd: RawFd) -> bool {
    let Ok(metadata) = std::fs::metadata(format!("/proc/self/fd/{fd}")) else {
        return std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok();
    };
    let info = Proc::open().and_then(|proc| proc.descriptor("self", fd));
    let flags = info.ok().and_then(|info| info.flags());
    metadata.is_dir() || flags.is_none_or(|flags| flags.contains(OFlags::PATH))
}

/// Whether descriptors wait in the queue of a unix socket; yes when in doubt.
fn may_bring_descriptors(fd: RawFd) -> bool {
    let info = Proc::open().and_then(|proc| proc.descriptor("self", fd));
    info.ok().and_then(|info| info.waiting_descriptors()) != Some(0)
}

/// What `fd` is of, if that is neither the controlling terminal, nor a file, nor `/dev/null`.
fn past_terminal(fd: RawFd) -> Option<&'static str> {
    let own = match sys::duplicate(fd) {
        Ok(own) => own,
        Err(Errno::BADF) => return None,
        Err(_) => return Some("something unknown"),
    };
    let Ok(stat) = fstat(&own) else { return Some("something unknown") };
    let terminal = || {
        let stat = Proc::open().and_then(|proc| proc.stat(std::process::id())).ok()?;
        stat.terminal.filter(|_| tcgetsid(&own).is_ok())
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => None,
        FileType::CharacterDevice if stat.st_rdev == makedev(1, 3) => None,
        // By its own name, or as `/dev/tty`; the kernel tells sessions of no other terminal.
        FileType::CharacterDevice
            if terminal().is_some_and(|it| [it, makedev(5, 0)].contains(&stat.st_rdev)) =>
        {
            None
        }
        FileType::CharacterDevice => Some("another terminal, or a device"),
        FileType::Fifo => Some("a pipe"),
        FileType::Socket => Some("a socket"),
        _ => Some("no file"),
    }
}

/// The open descriptors above the standard streams.
fn open_descriptors() -> Vec<RawFd> {
    let all = Proc::open().and_then(|proc| proc.descriptors("self")?.numbers());
    all.unwrap_or_default().into_iter().filter(|fd| *fd > 2).collect()
}
