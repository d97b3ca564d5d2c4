//! Signals that someone sends to Dewar meaning the command.

use super::capabilities::with_raised;
use super::descendants;
use super::outcome::CommandStatus;
use super::sandbox::{Sandbox, signal_group};
use crate::sys::Signalled;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};
use rustix::thread::CapabilitySet;

/// The signals that a program may want to handle and that someone may send to Dewar meaning the
/// command. They are received as events while the sandbox runs.
pub(super) const WATCHED: [i32; 11] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
];

/// Those of them that mean the end to whoever sends them.
pub(super) const DEADLY: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

impl Sandbox {
    /// Ends this process by a signal that has ended the command's before it was executed: who
    /// presses a key wants no message. Returns if there was none.
    pub fn end_if_interrupted(&mut self) {
        let mut events = [PollFd::new(&self.command, PollFlags::IN)];
        // Waiting would let a command go on that lives.
        if !matches!(poll(&mut events, Some(&Timespec::default())), Ok(1)) {
            return;
        }
        if let Ok(CommandStatus::Killed(signal)) = self.wait()
            && DEADLY.contains(&signal)
        {
            drop(self.cgroup.take());
            CommandStatus::Killed(signal).leave();
        }
    }

    /// Signals the command's process.
    pub(super) fn signal(&self, signal: Signal) {
        // If it is gone, its end is reported next.
        let _ = with_raised(CapabilitySet::KILL, || pidfd_send_signal(&self.command, signal));
    }

    /// Passes on what arrived before there was a process of the command: then a key pressed reached
    /// only Dewar.
    pub(super) fn pass_on_early_signals(&mut self) {
        while let Some(Signalled { signal, .. }) = self.signals.next() {
            if let Some(signal) = Signal::from_named_raw(signal) {
                self.signal(signal);
            }
        }
    }

    /// Passes a signal on if it was meant for the command and did not reach it anyway.
    ///
    /// The kernel sends what it generates (keys, the end of the terminal) to the whole process
    /// group. What the sandbox sends to its group reaches Dewar, too. Neither is passed on, unless
    /// the command has a group of its own. A signal that somebody else sends to the whole group
    /// reaches the command twice, which is better than never.
    pub(super) fn on_signal(&mut self, signalled: Signalled) {
        let Some(signal) = Signal::from_named_raw(signalled.signal) else { return };
        if signal == Signal::CONT {
            // If init is gone, that is reported next.
            if self.stop.stopped && self.reports.nudge().is_ok() {
                self.stop.asked += 1;
            }
            return;
        }
        let stops = matches!(signal, Signal::TSTP | Signal::TTIN | Signal::TTOU);
        match (signalled.sender, self.own_group()) {
            (Some(sender), _) if descendants::is_inside(self.proc(), sender, self.init_pid) => {}
            (None, None) => {}
            // Who stops a job means all of it, and with Dewar nothing in it goes on.
            (sender, Some(group)) if sender.is_none() || stops => signal_group(group, signal),
            _ => self.signal(signal),
        }
    }
}
