//! memfd_create: memory that a descriptor stands for, and no path.
//!
//! No rule of the envelope can be about such memory, so the kernel executes it whatever the
//! envelope says: by a path that is exchanged for `/proc/self/fd/N` once the exec was decided, as
//! the interpreter that a script names, as the loader of a program. So the memory is made as memory
//! that cannot be executed as a program, unless policy lets every domain execute it. That costs the
//! few programs which make any, not every exec.

use super::place::place_of;
use avc::Hint;
use flask::{Class, FileKind, Question, perm};
use mediation::call::{Answer, Asker, CallResult};
use rustix::{
    fs::{MemfdFlags, Mode, SealFlags, fcntl_add_seals, memfd_create},
    io::{Errno, Result},
};
use std::{
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

/// The longest name of such memory, as memfd_create(2) says.
const LONGEST: usize = 249;

/// What the kernel calls such memory, in the place of a path.
const PREFIX: &str = "/memfd:";

/// The bits that make a file a program.
const EXECUTABLE: Mode = Mode::from_raw_mode(0o111);

pub(super) fn decide(asker: Asker<'_>) -> CallResult {
    if may_be_executed(asker) {
        // Policy lets every domain execute it: nothing is gained by other flags.
        return Ok(Answer::Continue);
    }
    asker.same_ids()?;
    let name = asker.caller.path(0).map_err(|error| match error {
        Errno::NAMETOOLONG => Errno::INVAL,
        error => error,
    })?;
    if name.as_os_str().len() > LONGEST {
        return Err(Errno::INVAL);
    }
    let flags = MemfdFlags::from_bits_retain(asker.caller.int(1).cast_unsigned());
    let fd = make(&name, flags)?;
    Ok(Answer::Open { fd, cloexec: flags.contains(MemfdFlags::CLOEXEC) })
}

/// Whether every domain may execute such memory.
fn may_be_executed(asker: Asker<'_>) -> bool {
    if asker.is_inside() {
        return false;
    }
    let state = asker.state;
    let tsid = state.labels.of_path(Path::new(PREFIX), FileKind::File);
    let requested = perm::file::EXECUTE | perm::file::EXECUTE_NO_TRANS;
    let may = |&ssid| {
        let question = Question { ssid, tsid, tclass: Class::File };
        state.caches.file.grants(question, requested, &Hint::default())
    };
    state.policy.load().plan.domains.iter().all(may)
}

/// The memory, without the right to execute it and, where the kernel knows that seal (Linux 6.3),
/// without the right to change that.
fn make(name: &Path, flags: MemfdFlags) -> Result<OwnedFd> {
    let plain = (flags | MemfdFlags::CLOEXEC).difference(MemfdFlags::EXEC);
    let name = name.as_os_str().as_bytes();
    match memfd_create(name, plain | MemfdFlags::NOEXEC_SEAL) {
        Ok(fd) => {
            if !flags.contains(MemfdFlags::ALLOW_SEALING) {
                // The seal on execution came with the right to add others, which the program has
                // not asked for.
                fcntl_add_seals(&fd, SealFlags::SEAL)?;
            }
            Ok(fd)
        }
        // Or the program's own flags are wrong.
        Err(Errno::INVAL) => {
            let fd = memfd_create(name, plain)?;
            rustix::fs::fchmod(&fd, Mode::from_raw_mode(0o666))?;
            Ok(fd)
        }
        Err(error) => Err(error),
    }
}

/// Whether `object` is such memory, and must stay what cannot be executed.
pub fn stays_plain(asker: Asker<'_>, object: &OwnedFd) -> Result<bool> {
    let path = place_of(asker, object)?;
    let is_memory = path.as_os_str().as_bytes().starts_with(PREFIX.as_bytes())
        && rustix::fs::fstat(object)?.st_nlink == 0;
    Ok(is_memory && !may_be_executed(asker))
}

/// Whether `mode` would make a program of a file.
pub(super) fn is_program(mode: Mode) -> bool {
    mode.intersects(EXECUTABLE)
}
