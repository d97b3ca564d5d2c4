//! The foreground of a terminal: a run gives on what it has, and takes nothing from others.

use super::FileAsker;
use crate::{
    audit::Refusal,
    call::{Answer, CallResult},
};
use rustix::{
    io::Errno,
    process::{Pid, getpgid, getpgrp, test_kill_process_group},
    termios::tcgetpgrp,
};

/// ioctl(2) with `TIOCSPGRP`, which tcsetpgrp(3) makes. To a process that ignores `SIGTTOU` the
/// kernel gives the foreground also in the background: what is typed for a shell outside would come
/// to the run, and the shell would end.
pub(super) fn set_foreground(asker: FileAsker<'_>) -> CallResult {
    let terminal = asker.duplicate(asker.caller.int(0))?;
    let foreground = match tcgetpgrp(&terminal) {
        // Of a session of the run's own; of any other but Dewar's, the kernel says the same to it.
        Err(Errno::NOTTY) => return Ok(Answer::Continue),
        foreground => foreground?,
    };
    let is_in_it = |pid: u32| {
        let pid = Pid::from_raw(pid.cast_signed());
        pid.is_some_and(|pid| getpgid(Some(pid)) == Ok(foreground))
    };
    let view = &asker.state.view;
    let is_own = foreground == getpgrp()
        || test_kill_process_group(foreground) == Err(Errno::SRCH)
        || view.proc.pids()?.into_iter().any(|pid| is_in_it(pid) && view.is_inside(pid));
    if is_own { Ok(Answer::Continue) } else { Err(asker.refuse(&in_the_background())) }
}

fn in_the_background() -> Refusal {
    Refusal {
        errno: Errno::PERM,
        by: "the file object manager",
        tclass: "chr_file",
        missing: "ioctl",
        object: "the foreground of the terminal (TIOCSPGRP)".to_owned(),
        reason: "the run is in the background, and the terminal is another program's",
        instead: "bring the run to the foreground (`fg`)",
    }
}
