//! The end of every process of a run, where nothing less takes a permission back.

use super::{Owner, PATIENCE};
use monitor::{Action, Control, Held, Holder, ProcessStatus, Receipt};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::{
    thread,
    time::{Duration, Instant},
};

impl Owner {
    /// Ends every process: what may be read is settled in the kernel, so none may go on.
    pub(super) fn end(&self, mut receipt: Receipt) -> Receipt {
        let Some(control) = self.control.get() else { return receipt };
        let until = Instant::now() + PATIENCE;
        loop {
            let running = control.processes().unwrap_or_default();
            let killed = running.iter().filter(|process| kill(control, process));
            receipt.holders.extend(killed.map(|process| Holder {
                pid: process.pid,
                comm: process.comm.clone(),
                held: Held::Unknown,
                object: String::new(),
                lost: vec!["read".into()],
                action: Action::Killed,
                reason: "mode `fast` leaves reading to the kernel".into(),
                after: receipt.took,
            }));
            if running.is_empty() || Instant::now() > until {
                receipt.complete = running.is_empty();
                return receipt;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Kills a process of the sandbox; whether it was still there.
fn kill(control: &Control, process: &ProcessStatus) -> bool {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return false };
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    // The number may have come to mean another process before it was opened, but not since.
    let still = control.processes().unwrap_or_default().iter().any(|it| it.pid == process.pid);
    still && pidfd_send_signal(&fd, Signal::KILL).is_ok()
}
