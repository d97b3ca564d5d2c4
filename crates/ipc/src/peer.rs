//! Who is at the other end of a connection, as the kernel says, and which label that process has.

use crate::sys;
use flask::Sid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// The process that made a connection. Held by a descriptor, so that its number cannot come to mean another.
#[derive(Debug)]
pub struct Peer {
    pid: i32,
    uid: u32,
    pidfd: OwnedFd,
}

impl Peer {
    /// Who connected `socket`.
    pub(crate) fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let (pid, uid) = sys::peer_credentials(socket)?;
        let peer = Self { pid, uid, pidfd: sys::peer_pidfd(socket)? };
        if pid == 0 {
            return Err(io::Error::other("the peer's PID namespace is not visible from here"));
        }
        Ok(peer)
    }

    /// Its number in this process's PID namespace.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Its effective user when it connected.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Whether it has not ended. While it has not, its number is its own.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        // What cannot be asked counts as ended.
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ended| ended == 0)
    }
}

impl AsFd for Peer {
    /// Its pidfd.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// The trusted record of which label a process has: by lineage where a monitor keeps it, or by a table.
///
/// A port asks when a process connects, and again whenever the record has changed.
pub trait PeerLabels: Send + Sync {
    /// The label of `peer`; `None` if it is not known, and then nothing is granted to it.
    fn sid(&self, peer: &Peer) -> Option<Sid>;

    /// A number that grows before any label that was given out changes. It is read on every call, so it must cost
    /// no more than a load.
    fn generation(&self) -> u64;
}

/// Labels of processes by their number, kept by whoever starts and ends them.
#[derive(Debug, Default)]
pub struct PeerTable {
    sids: RwLock<HashMap<i32, Sid>>,
    generation: AtomicU64,
}

impl PeerTable {
    /// Notes the label of a process, or with `None` that it has none any more. For calls that begin after this
    /// has returned, the new label holds, also on connections that exist.
    pub fn set(&self, pid: i32, sid: Option<Sid>) {
        let mut sids = self.sids.write().unwrap_or_else(PoisonError::into_inner);
        match sid {
            Some(sid) => sids.insert(pid, sid),
            None => sids.remove(&pid),
        };
        self.generation.fetch_add(1, Ordering::Release);
    }
}

impl PeerLabels for PeerTable {
    fn sid(&self, peer: &Peer) -> Option<Sid> {
        let sids = self.sids.read().unwrap_or_else(PoisonError::into_inner);
        sids.get(&peer.pid()).copied()
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}
