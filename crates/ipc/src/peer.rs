//! Who is at the other end of a connection, as the kernel says, and which label that process has.

use crate::{generation::Generation, sys};
use flask::Sid;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
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

/// The user of the process that connected this socket, also where the process has no number here,
/// as one outside of this namespace.
///
/// # Errors
///
/// Whatever the system says.
pub fn peer_user(socket: BorrowedFd<'_>) -> io::Result<u32> {
    sys::peer_credentials(socket).map(|(_, user)| user)
}

impl Peer {
    /// Who connected a unix socket; who listens there, on the side that connected.
    ///
    /// # Errors
    ///
    /// For a socket that is no connected unix socket, a process that has ended and been reaped, and
    /// one in a PID namespace that is not visible from here.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let (pid, uid) = sys::peer_credentials(socket)?;
        let pidfd = sys::peer_pidfd(socket)?;
        let name = sys::peer_name(socket)?;
        if pid == 0 {
            return Err(io::Error::other("the peer's PID namespace is not visible from here"));
        }
        Ok(Self { pid, uid, pidfd, name })
    }

    /// The same connection, of which `process`, with the number `pid`, turned out to be the one
    /// that speaks.
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

    /// The name that its end of the connection is bound to, as in unix(7): a path, or 0 and an
    /// abstract name; empty for an end without a name, which is what most clients have.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Whether it has not ended. While it has not, its number is its own.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        lives(&self.pidfd)
    }
}

impl AsFd for Peer {
    /// Its pidfd.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// The trusted record of which label a process has: by lineage where a monitor keeps it, or by a
/// table.
///
/// A port asks when a process connects, and again whenever the answer may not hold any more.
pub trait PeerLabels: Send + Sync {
    /// The label of the process that connected; `None` if it is not known, and then nothing is
    /// granted to it.
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

    /// The label is that of `speaker`, in whose place another process made the connection: from now
    /// on only what the speaker says counts.
    #[must_use]
    pub fn of_speaker(self, speaker: Peer) -> Self {
        Self { speaker: Some(speaker), ..self }
    }

    pub(crate) fn into_parts(self) -> (Sid, Generation, Option<Peer>) {
        (self.sid, self.until, self.speaker)
    }
}

/// Labels of processes, kept by whoever starts them. A label ends with its process: whoever gets
/// the number next has none.
#[derive(Debug, Default)]
pub struct PeerTable {
    labels: RwLock<HashMap<i32, Labelled>>,
    generation: Arc<crate::Counter>,
}

#[derive(Debug)]
struct Labelled {
    sid: Sid,
    pidfd: OwnedFd,
}

impl PeerTable {
    /// Notes the label of a process, or with `None` that it has none any more. For calls that begin
    /// after this has returned, the new label holds, also on connections that exist. Takes a
    /// descriptor for each process.
    ///
    /// # Errors
    ///
    /// There is no such process (`ESRCH`), or no descriptor left: then it has no label.
    pub fn set(&self, pid: i32, sid: Option<Sid>) -> io::Result<()> {
        let number = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        let pidfd = sid.map(|_| pidfd_open(number, PidfdFlags::empty())).transpose();
        let mut labels = self.labels.write().unwrap_or_else(PoisonError::into_inner);
        labels.remove(&pid);
        // Now and then, so that each label costs little.
        if labels.len().is_power_of_two() {
            labels.retain(|_, labelled| lives(&labelled.pidfd));
        }
        let made = pidfd.map(|pidfd| {
            let labelled = sid.zip(pidfd).map(|(sid, pidfd)| Labelled { sid, pidfd });
            labels.extend(labelled.map(|labelled| (pid, labelled)));
        });
        self.generation.advance();
        Ok(made?)
    }
}

/// Whether the process has not ended. What cannot be asked counts as ended.
fn lives(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ended| ended == 0)
}

impl PeerLabels for PeerTable {
    fn identify(&self, peer: &Peer) -> Option<Label> {
        // In this order: a change between the two is noticed by the next call.
        let until = Generation::of(Arc::clone(&self.generation));
        let labels = self.labels.read().unwrap_or_else(PoisonError::into_inner);
        let labelled = labels.get(&peer.pid())?;
        // Two processes that live at the same time have two numbers: if both live, they are one.
        (lives(&labelled.pidfd) && peer.is_alive()).then(|| Label::new(labelled.sid, until))
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

    #[test]
    fn a_label_ends_with_its_process() {
        let table = PeerTable::default();
        let sid = Sid::new(100).unwrap();
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let own = Peer::of(ours.as_fd()).unwrap();
        drop(theirs);
        assert!(table.identify(&own).is_none());
        table.set(own.pid(), Some(sid)).unwrap();
        assert_eq!(table.identify(&own).unwrap().into_parts().0, sid);
        // As if the number had been another's, who has ended.
        let mut other = std::process::Command::new("true").spawn().unwrap();
        let pid = other.id().cast_signed();
        table.set(pid, Some(sid)).unwrap();
        other.wait().unwrap();
        let labelled = table.labels.write().unwrap().remove(&pid).unwrap();
        table.labels.write().unwrap().insert(own.pid(), labelled);
        assert!(table.identify(&own).is_none());
        assert_eq!(table.set(pid, Some(sid)).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        table.set(own.pid(), Some(sid)).unwrap();
        table.set(own.pid(), None).unwrap();
        assert!(table.identify(&own).is_none());
    }
}
