//! Terminals: a run opens those that it was given or has made, and nobody else's.
//!
//! Policy names them by directory (`/dev/pts`), in which the user's others are, too: those of
//! programs outside, whenever they were opened.

use audit::Refusal;
use confine::launch::Terminals;
use mediation::call::Asker;
use proc::path_of;
use rustix::{
    fs::{FileType, fstat, makedev},
    io::{Errno, Result},
};
use std::os::fd::OwnedFd;

/// Whether `object`, which the monitor holds, is no terminal or one of the run's.
pub(super) fn allow(asker: Asker<'_>, object: &OwnedFd) -> Result<()> {
    let found = fstat(object)?;
    let is_decided = asker.state.caches.file.decides;
    if !is_decided || !Terminals::is_one(&found) || asker.state.given.terminals.has(&found) {
        return Ok(());
    }
    let path = path_of(&asker.state.targets.tree, object)?;
    Err(asker.refuse(&Refusal {
        errno: Errno::ACCESS,
        by: "the file object manager",
        tclass: "chr_file",
        missing: "open",
        object: path.to_string_lossy().into_owned(),
        reason: "it is another terminal, neither given to this run nor made by it: who opens it reads what is typed there, and \
                 writes on its screen",
        instead: "use the terminal that the run was started on (/dev/tty), or one that it makes (script, tmux)",
    }))
}

/// Notes the terminal that belongs to `opened`, if that has made one.
pub(super) fn note(asker: Asker<'_>, opened: &OwnedFd) -> Result<()> {
    let found = fstat(opened)?;
    let is_device = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice;
    // `/dev/ptmx`, and the same in a directory of terminals.
    if !is_device || found.st_rdev != makedev(5, 2) {
        return Ok(());
    }
    asker.state.given.terminals.add_of(opened)
}
