//! Who is at the other end of a connection, as the kernel says, and which label that process has.

use crate::{generation::Generation, sys};
use flask::Sid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, PoisonError, RwLock},
};

/// A process at the other end of a connection, held by a descriptor that tells when it has ended.
#[derive(Debug)]
pub struct Peer {
    pid: i32,
    uid: u32,
    pidfd: OwnedFd,
    name: Vec<u8>,
}

impl Peer {
    /// Who connected a unix socket; who listens there, on the side that connected.
    ///
    /// # Errors
    ///
    /// For a socket that is no connected unix socket, a process that has ended and been reaped, and one in a PID
    /// namespace that is not visible from here.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let (pid, uid) = sys::peer_credentials(socket)?;
        let pidfd = sys::peer_pidfd(socket)?;
        let name = sys::peer_name(socket)?;
        if pid == 0 {
            return Err(io::Error::other("the peer's PID namespace is not visible from here"));
        }
        Ok(Self { pid, uid, pidfd, name })
    }

    /// The same connection, of which `process`, with the number `pid`, turned out to be the one that speaks.
    #[must_use]
    pub fn spoken_for(&self, pid: i32, process: OwnedFd) -> Self {
        Self { pid, uid: self.uid, pidfd: process, name: self.name.clone() }
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

    /// The name that its end of the connection is bound to, as in unix(7): a path, or 0 and an abstract name; empty
    /// for an end without a name, which is what most clients have.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
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
/// A port asks when a process connects, and again whenever the answer may not hold any more.
pub trait PeerLabels: Send + Sync {
    /// The label of the process that connected; `None` if it is not known, and then nothing is granted to it.
    fn identify(&self, peer: &Peer) -> Option<Label>;
}

impl<F: Fn(&Peer) -> Option<Label> + Send + Sync> PeerLabels for F {
    fn identify(&self, peer: &Peer) -> Option<Label> {
        self(peer)
    }
}

/// What a record says of the process behind a connection.
#[derive(Debug)]
pub struct Label {
    sid: Sid,
    until: Generation,
    speaker: Option<Peer>,
}

impl Label {
    /// A label that holds as long as `until` is current.
    #[must_use]
    pub fn new(sid: Sid, until: Generation) -> Self {
        Self { sid, until, speaker: None }
    }

    /// The label is that of `speaker`, in whose place another process made the connection: from now on only what the
    /// speaker says counts.
    #[must_use]
    pub fn of_speaker(self, speaker: Peer) -> Self {
        Self { speaker: Some(speaker), ..self }
    }

    pub(crate) fn into_parts(self) -> (Sid, Generation, Option<Peer>) {
        (self.sid, self.until, self.speaker)
    }
}

/// Labels of processes by their number, kept by whoever starts and ends them.
#[derive(Debug, Default)]
pub struct PeerTable {
    sids: RwLock<HashMap<i32, Sid>>,
    generation: Arc<crate::Counter>,
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
        self.generation.advance();
    }
}

impl PeerLabels for PeerTable {
    fn identify(&self, peer: &Peer) -> Option<Label> {
        // In this order: a change between the two is noticed by the next call.
        let until = Generation::of(Arc::clone(&self.generation));
        let sids = self.sids.read().unwrap_or_else(PoisonError::into_inner);
        sids.get(&peer.pid()).map(|sid| Label::new(*sid, until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept, bind, connect, listen,
        socket_with,
    };

    /// The name of a client that has bound its socket to `own`, as the service sees it.
    fn seen(own: Option<&SocketAddrUnix>) -> Vec<u8> {
        let unix = || {
            let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
            socket_with(family, SocketType::SEQPACKET, flags, None).unwrap()
        };
        let directory = tempfile::tempdir().unwrap();
        let address = SocketAddrUnix::new(directory.path().join("socket")).unwrap();
        let (listener, client) = (unix(), unix());
        bind(&listener, &address).unwrap();
        listen(&listener, 1).unwrap();
        if let Some(own) = own {
            bind(&client, own).unwrap();
        }
        connect(&client, &address).unwrap();
        Peer::of(accept(&listener).unwrap().as_fd()).unwrap().name().to_vec()
    }

    #[test]
    fn the_name_of_a_peer_is_what_it_has_bound_its_socket_to() {
        assert_eq!(seen(None), b"");
        let nothing = SocketAddrUnix::new_abstract_name(b"").unwrap();
        assert_eq!(seen(Some(&nothing)), b"\0");
        let name = format!("dewar-test-{}", std::process::id());
        let own = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        assert_eq!(seen(Some(&own)), format!("\0{name}").as_bytes());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("client");
        assert_eq!(
            seen(Some(&SocketAddrUnix::new(&path).unwrap())),
            path.as_os_str().as_encoded_bytes()
        );
    }
}
