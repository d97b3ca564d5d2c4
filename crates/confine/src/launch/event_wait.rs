//! What init and the subreaper wait for once all is laid down: the end of a child, or a message of
//! the monitor.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use super::wire::Wire;
use crate::sys;

/// What a process asks to hear at the end of the thread that has made it: one that is killed keeps
/// its descriptors for as long as another thread of its process is in a call that nothing ends.
pub(super) const MONITOR_ENDED: Signal = Signal::USR1;

/// A process that only waits, without any descriptor but those that it needs for that.
pub(super) struct EventWait<'w> {
    children: sys::SignalFd,
    monitor: &'w Wire,
}

impl<'w> EventWait<'w> {
    /// Closes all but `monitor` and `kept`. The signals of children are blocked already, and so is
    /// [`MONITOR_ENDED`], if the process `hears` it.
    pub(super) fn begin(
        monitor: &'w Wire,
        kept: Option<BorrowedFd<'_>>,
        hears: bool,
    ) -> Result<Self, Errno> {
        let own: &[i32] = if hears { &[MONITOR_ENDED.as_raw()] } else { &[] };
        let signals = sys::SignalSet::of(&[&[libc::SIGCHLD], own].concat());
        let children = sys::SignalFd::new(&signals)?;
        sys::silence(&[0, 1, 2])?;
        let own = [monitor.as_fd().as_raw_fd(), children.as_fd().as_raw_fd()];
        let kept = kept.map(|descriptor| descriptor.as_raw_fd());
        sys::close_all_but(&own.into_iter().chain(kept).collect::<Vec<RawFd>>());
        Ok(Self { children, monitor })
    }

    /// Waits until something has happened to a child or on the monitor's side; whether it is the
    /// latter.
    pub(super) fn wait(&self) -> bool {
        let mut events = [
            PollFd::new(&self.children, PollFlags::IN),
            PollFd::from_borrowed_fd(self.monitor.as_fd(), PollFlags::IN),
        ];
        // An interruption is as good as an event: everything is looked at again.
        let _ = poll(&mut events, None);
        let mut is_monitor = !events[1].revents().is_empty();
        while let Some(signalled) = self.children.next() {
            is_monitor |= signalled.signal == MONITOR_ENDED.as_raw();
        }
        is_monitor
    }
}
