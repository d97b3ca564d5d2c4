//! A command in a run that this process is in already: what the kernel can be told of it there.

use super::{ByCgroup, CommandStatus, Inherited, Limits, exec::Program};
use crate::{filter, sys};
use rustix::io::Errno;
use std::ffi::OsString;

/// Executes `command` with `environment`, in the place of this process. Returns only if it could
/// not, and says why.
///
/// Lets no descriptor pass that would lead around a profile, sets the limits that a process can
/// set itself, and refuses what names objects of an IPC namespace, which the command shares with
/// the run around it.
#[must_use]
pub fn execute(
    command: &[OsString],
    environment: &[(OsString, OsString)],
    inherited: &Inherited,
    limits: &Limits,
) -> CommandStatus {
    match prepared(command, environment, inherited, limits) {
        Ok(program) => CommandStatus::NotExecuted(program.execute(&program.present())),
        Err(errno) => CommandStatus::NotExecuted(errno),
    }
}

fn prepared(
    command: &[OsString],
    environment: &[(OsString, OsString)],
    inherited: &Inherited,
    limits: &Limits,
) -> Result<Program, Errno> {
    let program = Program::new(command, environment).map_err(|_| Errno::INVAL)?;
    let filter = filter::without_ipc().map_err(|_| Errno::TOOBIG)?;
    inherited.pass_descriptors()?;
    limits.apply(ByCgroup::default())?;
    limits.apply_to_files()?;
    sys::install_plain_filter(&filter)?;
    inherited.restore_signals();
    Ok(program)
}
