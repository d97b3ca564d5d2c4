//! Opening the very file that was decided.

use super::{limited, object::Seen, open::Open, terminals};
use flask::{AccessVector, Class};
use mediation::{call::Asker, subject::proc_files};
use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Result,
};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

impl Open {
    /// Opens the very file that was decided, through the monitor's own descriptor of it.
    pub(super) fn reopen(
        &self,
        asker: Asker<'_>,
        object: &OwnedFd,
        kind: FileType,
        mode: Mode,
    ) -> Result<OwnedFd> {
        let terminal = match kind {
            FileType::CharacterDevice => {
                controlling_terminal(asker, object, |class| self.requested(class))?
            }
            _ => None,
        };
        let object = terminal.as_ref().unwrap_or(object);
        if self.flags.contains(OFlags::PATH) {
            return limited::handle(asker, object, self.flags);
        }
        if kind == FileType::CharacterDevice {
            terminals::allow(asker, object)?;
        }
        let drop = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags =
            self.flags.difference(if self.is_temporary() { OFlags::NOFOLLOW } else { drop });
        let number = object.as_raw_fd().to_string();
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        let open =
            || rustix::fs::openat(&asker.state.targets.tree.own_fds, number.as_str(), flags, mode);
        if self.is_temporary() {
            return asker.with_umask(open);
        }
        if kind == FileType::Fifo && !flags.intersects(OFlags::NONBLOCK | OFlags::RDWR) {
            return self.wait_for_peer(asker, object, open);
        }
        let opened = open()?;
        if kind == FileType::CharacterDevice {
            terminals::note(asker, &opened)?;
        }
        Ok(opened)
    }

    /// Opens a FIFO while policy may change, and is then decided again.
    fn wait_for_peer(
        &self,
        asker: Asker<'_>,
        fifo: &OwnedFd,
        open: impl Fn() -> Result<OwnedFd>,
    ) -> Result<OwnedFd> {
        let (opened, changed) = asker.wait(open)?;
        if changed {
            let seen = Seen::of(asker, fifo.as_fd())?;
            seen.allow(asker, self.requested(seen.class), fifo)?;
        }
        Ok(opened)
    }
}

/// `/dev/tty` means the caller's controlling terminal, not the monitor's: that terminal, if this
/// device is it.
fn controlling_terminal(
    asker: Asker<'_>,
    device: &OwnedFd,
    requested: impl Fn(Class) -> AccessVector,
) -> Result<Option<OwnedFd>> {
    if rustix::fs::fstat(device)?.st_rdev != rustix::fs::makedev(5, 0) {
        return Ok(None);
    }
    let path = proc_files::controlling_terminal(asker)?;
    let fd = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let seen = Seen::of(asker, fd.as_fd())?;
    seen.allow(asker, requested(seen.class), &fd)?;
    Ok(Some(fd))
}
