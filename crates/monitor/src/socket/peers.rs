//! Whom the unix sockets of the sandbox were connected to, as policy decided it: by now the name of
//! the peer may lead to somebody else, or to nobody.

use crate::state::MonitorState;
use flask::{FileKind, InitialSid, Sid};
use inode_labels::{Labels, Status};
use realpath::path_from;
use rustix::{io::Result, net::sockopt::socket_cookie};
use std::{
    collections::HashMap,
    os::fd::AsFd,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// Connections that are remembered, in about 16 MiB; beyond, the first are forgotten, and known by
/// the name of their peer.
const MOST: usize = 65_536;

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
pub(crate) struct Peers(Mutex<HashMap<u64, Peer>>);

impl Peers {
    /// Notes whom a socket is about to be connected to.
    pub(super) fn note(&self, socket: impl AsFd, peer: Peer) -> Result<()> {
        let cookie = socket_cookie(socket)?;
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.len() >= MOST {
            peers.clear();
        }
        peers.insert(cookie, peer);
        Ok(())
    }

    /// The label of whom a socket was connected to, before the last change of policy and now;
    /// `None` if it is not known whom.
    pub(crate) fn label(
        &self,
        state: &MonitorState,
        socket: impl AsFd,
    ) -> Result<Option<(Sid, Sid)>> {
        let cookie = socket_cookie(socket)?;
        let peer = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&cookie).cloned();
        Ok(match peer {
            None => None,
            Some(Peer::Inside(sid)) => Some((sid, sid)),
            Some(Peer::Abstract(name)) => Some(abstract_label(state, &name)),
            Some(Peer::File { status, path }) => {
                let label = state.labels.of_file(&status, || Ok(path))?;
                Some((label.before(), label.sid))
            }
        })
    }
}

/// The label of an abstract name that the sandbox has not bound: that of a rule for `@NAME`, before
/// the last change of policy and now.
pub(super) fn abstract_label(state: &MonitorState, name: &[u8]) -> (Sid, Sid) {
    let before = state.labels.of_path_before(&rule_of(name), FileKind::Socket);
    (any(before), abstract_label_by(&state.labels, name))
}

/// The label that rules give an abstract name.
pub(super) fn abstract_label_by(labels: &Labels, name: &[u8]) -> Sid {
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
