//! What init and the keeper wait for once all is laid down: the end of a child, or a word of the
//! monitor.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::wire::Wire;
use crate::sys;

/// A process that only waits, without any descriptor but those that it needs for that.
pub(super) struct Vigil<'w> {
    children: sys::SignalFd,
    monitor: &'w Wire,
}

impl<'w> Vigil<'w> {
    /// Closes all but `monitor` and `kept`. The signals of children are blocked already.
    pub(super) fn begin(monitor: &'w Wire, kept: Option<BorrowedFd<'_>>) -> Result<Self, Errno> {
        let children = sys::SignalFd::new(&sys::SignalSet::of(&[libc::SIGCHLD]))?;
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
        let is_monitor = !events[1].revents().is_empty();
        while self.children.next().is_some() {}
        is_monitor
    }
}
