//! A running sandbox, as the monitor sees it: waiting for the command, forwarding signals to it,
//! stopping and continuing with it, ending it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use proc::Orphans;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group, pidfd_send_signal};
use rustix::thread::CapabilitySet;

use super::capabilities::with_raised;
use super::cgroup::Cgroup;
use super::descendants;
use super::inherited::Inherited;
use super::limits::{GRACE, Limits, Reached};
use super::outcome::CommandStatus;
use super::stop::Stop;
use super::subreaper::Subreaper;
use super::terminal::{self, Terminal};
use super::wire::{Report, Wire};
use crate::sys::{SignalFd, SignalSet};

/// A sandbox whose command is ready to be executed, or runs.
///
/// Dropping it ends everything in it.
pub struct Sandbox {
    pub(super) proc: OwnedFd,
    /// What ends last: init, or the subreaper above it.
    pub(super) last: OwnedFd,
    pub(super) subreaper: Option<Subreaper>,
    pub(super) init_pid: Pid,
    pub(super) command: OwnedFd,
    pub(super) command_pid: Pid,
    pub(super) reports: Wire,
    pub(super) hand_over: Option<Wire>,
    pub(super) released: bool,
    pub(super) signals: SignalFd,
    pub(super) terminal: Terminal,
    pub(super) inherited: Inherited,
    pub(super) limits: Limits,
    pub(super) cgroup: Option<Cgroup>,
    pub(super) stop: Stop,
    pub(super) hold: Option<Hold>,
    pub(super) reached: Reached,
    pub(super) ended: bool,
}

/// Has everything in the sandbox stand still until what it returns is dropped; `None` if it cannot.
pub(super) type Hold = Box<dyn Fn() -> Option<Box<dyn std::any::Any>>>;

/// Why waiting failed. The sandbox is ended.
#[derive(Debug, thiserror::Error)]
#[error("cannot wait for the command: {0}")]
pub struct WaitError(#[from] Errno);

/// What the time limit has come to.
enum Clock {
    Unlimited,
    Running(Instant),
    Grace(Instant),
    Over,
}

impl Sandbox {
    /// Lets the command be executed. Call it when notifications are answered: the exec may be the
    /// first one.
    ///
    /// # Errors
    ///
    /// The number of the failed call; the command's process is gone then.
    pub fn release(&mut self) -> Result<(), Errno> {
        match &self.hand_over {
            Some(hand_over) if !self.released => {
                self.released = true;
                hand_over.nudge()
            }
            _ => Ok(()),
        }
    }

    /// Closes the monitor's copies of what the command inherited: descriptors above the standard
    /// streams, standard input and output (both become `/dev/null`). Pipes then end when the
    /// command ends or closes them, as if Dewar were not there.
    ///
    /// # Errors
    ///
    /// When `/dev/null` cannot be opened.
    pub fn let_go_of_streams(&self) -> Result<(), Errno> {
        self.inherited.let_go()
    }

    /// Calls `hold` whenever Dewar is about to stop with its command, and drops what that returns
    /// when it goes on. Whoever stops a job means all of it, and types for somebody else then: what
    /// has left the job's session would read that. So where `hold` returns nothing, Dewar does not
    /// stop, and the command goes on.
    pub fn hold_while_stopped<T: 'static>(&mut self, hold: impl Fn() -> Option<T> + 'static) {
        self.hold = Some(Box::new(move || hold().map(|held| Box::new(held) as _)));
    }

    /// The first process of the sandbox, in the monitor's pid namespace.
    #[must_use]
    pub fn init_pid(&self) -> Pid {
        self.init_pid
    }

    /// The subreaper above it, where there is one, and what that leaves to the monitor if it is
    /// killed: it belongs to the sandbox as little as the monitor.
    #[must_use]
    pub fn subreaper(&self) -> Option<(Pid, &Orphans)> {
        self.subreaper.as_ref().map(|subreaper| (subreaper.pid, &subreaper.orphans))
    }

    /// Waits until the command has ended and nothing of the sandbox is left.
    ///
    /// Meanwhile signals sent to Dewar alone go to the command, Dewar stops when the command
    /// stops and continues it when continued, and the time limit runs. Call it on the thread that
    /// called [`start`](super::start()); it [`release`](Self::release)s the command first.
    ///
    /// # Errors
    ///
    /// [`WaitError`], after ending the sandbox.
    pub fn wait(&mut self) -> Result<CommandStatus, WaitError> {
        // A command that is gone already shows below.
        let _ = self.release();
        let outcome = self.follow();
        if outcome.is_err() {
            self.kill();
        }
        self.collect();
        Ok(outcome?)
    }

    /// How often limits were reached, once the command has ended.
    #[must_use]
    pub fn reached(&self) -> Reached {
        self.reached
    }

    /// Kills everything in the sandbox at once.
    pub fn kill(&mut self) {
        self.reports.shut();
        match &self.subreaper {
            Some(subreaper) => subreaper.lifetime_pipe.shut(),
            // Already gone is as good.
            None => {
                let _ = with_raised(CapabilitySet::KILL, || {
                    pidfd_send_signal(&self.last, Signal::KILL)
                });
            }
        }
    }

    fn follow(&mut self) -> Result<CommandStatus, Errno> {
        let mut clock = match self.limits.time {
            Some(time) => Clock::Running(Instant::now() + time),
            None => Clock::Unlimited,
        };
        let mut not_executed = None;
        loop {
            self.tick(&mut clock);
            let [reported, handed_over, signalled, gone] = self.poll(&clock)?;
            if handed_over {
                not_executed = not_executed.or(self.exec_failure()?);
            }
            if signalled {
                while let Some(signal) = self.signals.next() {
                    self.on_signal(signal);
                }
            }
            if !reported && !gone {
                continue;
            }
            if gone {
                // Were the subreaper killed alone, init would have nothing to say.
                self.reports.shut();
            }
            if let Some(outcome) = self.on_report()? {
                return Ok(match (clock, not_executed) {
                    (Clock::Grace(_) | Clock::Over, _) => CommandStatus::TimedOut,
                    (_, Some(errno)) => CommandStatus::NotExecuted(errno),
                    _ => outcome,
                });
            }
        }
    }

    /// Waits for something to happen: a report, the end of the hand-over, a signal, the last end.
    fn poll(&self, clock: &Clock) -> Result<[bool; 4], Errno> {
        let timeout = match clock {
            Clock::Unlimited | Clock::Over => None,
            Clock::Running(end) | Clock::Grace(end) => {
                Some(end.saturating_duration_since(Instant::now()) + Duration::from_millis(1))
            }
        };
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let hand_over = self.hand_over.as_ref().map_or(self.reports.as_fd(), AsFd::as_fd);
        let mut events = [
            PollFd::from_borrowed_fd(self.reports.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(hand_over, PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::new(&self.last, PollFlags::IN),
        ];
        match poll(&mut events, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let mut happened = events.map(|event| !event.revents().is_empty());
        happened[1] &= self.hand_over.is_some();
        Ok(happened)
    }

    /// What the command's process says last: why it was not executed, or nothing, if it was.
    fn exec_failure(&mut self) -> Result<Option<Errno>, Errno> {
        let Some(hand_over) = self.hand_over.take() else { return Ok(None) };
        let last = hand_over.receive()?.map(|received| received.report);
        Ok(match last {
            Some(Report::Failed(_, errno)) => Some(errno),
            _ => None,
        })
    }

    /// Acts on init's next report; the outcome if the command has ended.
    fn on_report(&mut self) -> Result<Option<CommandStatus>, Errno> {
        Ok(match self.reports.receive()?.map(|received| received.report) {
            Some(Report::Exited(status)) => Some(CommandStatus::Exited(status)),
            Some(Report::Killed(signal)) => Some(CommandStatus::Killed(signal)),
            Some(Report::Stopped(signal)) => {
                self.on_stop(signal);
                None
            }
            Some(Report::Current { stopped }) => {
                if self.stop.on_answer(stopped) {
                    self.resume();
                }
                None
            }
            Some(Report::Ready(_) | Report::Failed(..) | Report::Kept(_)) => None,
            // Init was killed, and everything with it.
            None => Some(CommandStatus::Killed(libc::SIGKILL)),
        })
    }

    /// Enforces the time limit.
    fn tick(&mut self, clock: &mut Clock) {
        let now = Instant::now();
        match *clock {
            Clock::Running(end) if now >= end => {
                self.signal(Signal::TERM);
                self.signal(Signal::CONT);
                *clock = Clock::Grace(now + GRACE);
            }
            Clock::Grace(end) if now >= end => {
                self.kill();
                *clock = Clock::Over;
            }
            _ => {}
        }
    }

    /// Stops as the command has stopped, so that the shell outside sees the job stopped.
    fn on_stop(&mut self, signal: i32) {
        self.stop.on_stop();
        let wants_terminal = matches!(signal, libc::SIGTTIN | libc::SIGTTOU);
        if let (true, Some(group)) = (wants_terminal, self.own_group())
            && self.terminal.hand_to(group)
        {
            // It stopped only because Dewar's group has the terminal in its place.
            self.stop.stopped = false;
            self.resume();
            return;
        }
        if self.is_stopped() {
            let still = self.hold.as_ref().map(|hold| hold());
            let is_running = matches!(still, Some(None));
            if !is_running {
                stop_by(signal);
            }
            drop(still);
            if is_running || terminal::is_orphaned(self.proc()) {
                self.stop.stopped = false;
                self.resume();
            }
        }
    }

    /// Continues the command, with the terminal if Dewar got it back and the command leads a
    /// group of its own.
    fn resume(&self) {
        match self.own_group() {
            Some(group) => {
                self.terminal.hand_to(group);
                signal_group(group, Signal::CONT);
            }
            None => self.signal(Signal::CONT),
        }
    }

    /// The command's process group, if it is not Dewar's.
    pub(super) fn own_group(&self) -> Option<Pid> {
        let group = descendants::group(self.proc(), self.command_pid);
        group.filter(|group| !self.terminal.is_own(*group))
    }

    fn is_stopped(&self) -> bool {
        descendants::is_stopped(self.proc(), self.command_pid)
    }

    /// The capabilities that are needed once more, at the end.
    pub(super) fn reserve(&self) -> CapabilitySet {
        // Root's own cgroup may be a directory that nobody may write to.
        let remove = self.cgroup.as_ref().map(|_| CapabilitySet::DAC_OVERRIDE);
        remove.unwrap_or(CapabilitySet::empty())
    }

    pub(super) fn proc(&self) -> BorrowedFd<'_> {
        self.proc.as_fd()
    }

    /// Waits for the last end, after which nothing of the sandbox is left, and cleans up.
    fn collect(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let was_killed = !descendants::await_end(self.last.as_fd());
        // Only if the subreaper was killed is there anything left.
        if let Some(subreaper) = self.subreaper.as_ref().filter(|_| was_killed) {
            descendants::kill_left(self.proc(), self.init_pid, &subreaper.orphans);
        }
        self.terminal.take_back();
        let reserve = self.reserve();
        if let Some(cgroup) = self.cgroup.take() {
            self.reached = cgroup.reached();
            with_raised(reserve, || drop(cgroup));
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
            self.collect();
        }
    }
}

/// Signals all of a process group; one that is gone is as good.
pub(super) fn signal_group(group: Pid, signal: Signal) {
    let _ = with_raised(CapabilitySet::KILL, || kill_process_group(group, signal));
}

/// Stops this process by `signal`; comes back when it is continued.
fn stop_by(signal: i32) {
    let Some(named) = Signal::from_named_raw(signal) else { return };
    if kill_process(getpid(), named).is_ok() {
        SignalSet::of(&[signal]).unblock();
        SignalSet::of(&[signal]).block();
    }
}
