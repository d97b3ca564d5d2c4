//! Whom the unix sockets of the sandbox were connected to, as policy decided it: by now the name of
//! the peer may lead to somebody else, or to nobody.

use super::kept::held;
use flask::{FileKind, InitialSid, Sid};
use inode_labels::{FileRef, Labels, Status};
use mediation::{call::Asker, state::MonitorState};
use proc::ProcessTree;
use realpath::path_from;
use rustix::{
    io::{Errno, Result},
    net::sockopt::socket_cookie,
};
use std::{
    collections::HashMap,
    os::fd::AsFd,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Sockets that are remembered, in about 4 MiB; beyond, those are forgotten that no process has any
/// more, or all.
const MOST: usize = 16_384;

/// The peer of a connection when it was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A process of the sandbox with this label, which has bound the name.
    Inside(Sid),
    /// An abstract name of somebody else.
    Abstract(Vec<u8>),
    /// The socket in the file system that somebody else has bound.
    File {
        /// The file.
        status: Status,
        /// Where it lay.
        path: PathBuf,
    },
}

/// The peers, by the cookie of the socket that was connected (`SO_COOKIE` of socket(7)).
#[derive(Debug, Default)]
pub(crate) struct Peers {
    of: Mutex<HashMap<u64, Connected>>,
    has_forgotten: AtomicBool,
}

/// A socket, and whom it may be connected to.
#[derive(Debug)]
struct Connected {
    /// Its number in `/proc/PID/fd`.
    number: u64,
    noted: Vec<Arc<Noted>>,
}

/// It is not known whom a socket was connected to: too many have been since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forgotten;

/// A peer that a socket may be connected to.
#[derive(Debug)]
struct Noted {
    peer: Peer,
    is_connected: AtomicBool,
}

/// A connect that has begun.
#[derive(Debug)]
pub(super) struct Connecting {
    cookie: u64,
    noted: Arc<Noted>,
    /// Whom the socket was connected to when it began.
    before: Vec<Arc<Noted>>,
}

impl Peers {
    /// Notes whom a socket is about to be connected to. Until that has come to an end, the socket
    /// may be connected to whom it was, and to whom another thread connects it.
    pub(super) fn begin(
        &self,
        tree: &ProcessTree,
        socket: impl AsFd,
        peer: Peer,
    ) -> Result<Connecting> {
        let cookie = socket_cookie(&socket)?;
        let number = rustix::fs::fstat(&socket)?.st_ino;
        let noted = Arc::new(Noted { peer, is_connected: AtomicBool::new(false) });
        let mut peers = self.peers();
        if peers.len() >= MOST {
            self.has_forgotten.store(true, Ordering::Relaxed);
            let held = held(tree).unwrap_or_default();
            peers.retain(|_, socket| held.contains(&socket.number));
            if peers.len() >= MOST {
                peers.clear();
            }
        }
        let of_socket = peers.entry(cookie).or_insert(Connected { number, noted: Vec::new() });
        let is_connected = |noted: &&Arc<Noted>| noted.is_connected.load(Ordering::Relaxed);
        let before = of_socket.noted.iter().filter(is_connected).cloned().collect();
        of_socket.noted.push(Arc::clone(&noted));
        Ok(Connecting { cookie, noted, before })
    }

    /// Forgets whom the socket is not connected to, now that a connect has ended.
    pub(super) fn end(&self, connecting: &Connecting, is_connected: bool) {
        let Connecting { cookie, noted, before } = connecting;
        noted.is_connected.store(is_connected, Ordering::Relaxed);
        let mut peers = self.peers();
        if let Some(of_socket) = peers.get_mut(cookie) {
            let gone = if is_connected { before } else { std::slice::from_ref(noted) };
            of_socket.noted.retain(|it| !gone.iter().any(|gone| Arc::ptr_eq(gone, it)));
            if of_socket.noted.is_empty() {
                peers.remove(cookie);
            }
        }
    }

    /// The labels of whom a socket may be connected to, before the last change of policy and now;
    /// none if it is not known whom.
    pub(crate) fn labels(
        &self,
        state: &MonitorState,
        socket: impl AsFd,
    ) -> Result<Vec<(Sid, Sid)>> {
        let cookie = socket_cookie(socket)?;
        let noted = self.peers().get(&cookie).map(|it| it.noted.clone()).unwrap_or_default();
        let label = |noted: Arc<Noted>| match &noted.peer {
            Peer::Inside(sid) => Ok((*sid, *sid)),
            Peer::Abstract(name) => Ok(abstract_label(state, name)),
            Peer::File { status, path } => {
                let label = state.labels.of_file(status, FileRef::None, || Ok(path.clone()))?;
                Ok((label.before(), label.sid))
            }
        };
        noted.into_iter().map(label).collect()
    }

    /// Whether somebody has a peer that is not known any more.
    pub(super) fn has_forgotten(&self) -> bool {
        self.has_forgotten.load(Ordering::Relaxed)
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<u64, Connected>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The label of an abstract name that the sandbox has not bound: that of a rule for `@NAME`, before
/// the last change of policy and now.
pub(super) fn abstract_label(state: &MonitorState, name: &[u8]) -> (Sid, Sid) {
    let before = state.labels.of_path_before(&rule_of(name), FileKind::Socket);
    (any(before), abstract_label_by(&state.labels, name))
}

/// The same, as a subject sees it, also one of a run inside.
pub(super) fn abstract_label_for(asker: Asker<'_>, name: &[u8]) -> Sid {
    let outer = abstract_label(asker.state, name).1;
    asker.labels().compose(outer, |layer| abstract_label_by(&layer.labels, name))
}

/// The label of what `owner` inside has made, if somebody has; else `by_rule`.
pub(super) fn owned(asker: Asker<'_>, owner: Option<Sid>, by_rule: Sid) -> Result<Sid> {
    match owner {
        None => Ok(by_rule),
        Some(owner) if !asker.is_inside() => Ok(owner),
        Some(owner) => asker.state.inside.stack.owned(owner, by_rule).ok_or(Errno::ACCESS),
    }
}

/// The label that rules give an abstract name.
fn abstract_label_by(labels: &Labels, name: &[u8]) -> Sid {
    any(labels.of_path(&rule_of(name), FileKind::Socket))
}

/// An abstract name as rules have it.
fn rule_of(name: &[u8]) -> PathBuf {
    path_from(&[b"@", name].concat()).to_owned()
}

/// What no rule is about is any socket.
fn any(sid: Sid) -> Sid {
    if sid == InitialSid::File.into() { InitialSid::AnySocket.into() } else { sid }
}
