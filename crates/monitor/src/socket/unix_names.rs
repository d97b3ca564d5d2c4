//! Who has the names of unix sockets, and had them when the sandbox was connected.

use super::{
    SocketManager,
    own::{AbstractName, InDoubt, NameHolder},
    peers::{Forgotten, abstract_label},
};
use flask::{FileKind, Sid};
use inode_labels::{FileRef, Status};
use mediation::state::MonitorState;
use proc::path_of;
use realpath::path_from;
use rustix::{
    fs::{Mode, OFlags},
    io::Result,
    net::SocketAddrUnix,
};
use std::os::fd::{AsFd, OwnedFd};

impl SocketManager {
    /// Whom `socket` reaches at an abstract name.
    pub(super) fn own_abstract_name(
        &self,
        state: &MonitorState,
        socket: &OwnedFd,
        name: &[u8],
    ) -> Result<std::result::Result<NameHolder, InDoubt>> {
        let name = AbstractName::reached(socket, name)?;
        Ok(self.endpoints.own.abstract_name((state, self.kept.as_ref()), &name))
    }

    /// The label of whoever has the name of the peer of a unix socket, before the last change of
    /// policy and now. `None` for what has none; an error if it is in doubt who has it.
    fn label_by_name(
        &self,
        state: &MonitorState,
        socket: &OwnedFd,
        name: &SocketAddrUnix,
    ) -> std::result::Result<Option<(Sid, Sid)>, Forgotten> {
        if let Some(name) = name.abstract_name() {
            return match self.own_abstract_name(state, socket, name) {
                Ok(Ok(NameHolder::Inside { owner, .. })) => Ok(Some((owner, owner))),
                Ok(Ok(NameHolder::Outside { .. })) => Ok(Some(abstract_label(state, name))),
                Ok(Err(InDoubt)) | Err(_) => Err(Forgotten),
            };
        }
        let path = name.path_bytes().and_then(|path| path.split(|byte| *byte == 0).next());
        let Some(path) = path.map(path_from) else { return Ok(None) };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty());
        let status = file.as_ref().ok().and_then(|file| Status::of(file.as_fd()).ok());
        if let Some(status) = status {
            if let Some(owner) = self.endpoints.own.file(status.file_number()) {
                return Ok(Some((owner, owner)));
            }
            let held = file.as_ref().map_or(FileRef::None, |file| FileRef::Fd(file.as_fd()));
            let path = || path_of(&state.targets.tree, file.as_ref().map_err(|errno| *errno)?);
            if let Ok(label) = state.labels.of_file(&status, held, path) {
                return Ok(Some((label.before(), label.sid)));
            }
        }
        // Nobody else can be reached there any more. Of a relative name it is not known where it
        // was.
        Ok(path.is_absolute().then(|| {
            let before = state.labels.of_path_before(path, FileKind::Socket);
            (before, state.labels.of_path(path, FileKind::Socket))
        }))
    }

    /// The labels of whom a unix socket may be connected to, before the last change of policy and
    /// now; by the name of its peer, if it was not connected under the eyes of the monitor.
    pub(crate) fn unix_labels(
        &self,
        state: &MonitorState,
        socket: &OwnedFd,
        name: &SocketAddrUnix,
    ) -> std::result::Result<Vec<(Sid, Sid)>, Forgotten> {
        match self.peers.labels(state, socket) {
            Ok(labels) if !labels.is_empty() => Ok(labels),
            // By now, the name may be another's.
            _ if self.peers.has_forgotten() => Err(Forgotten),
            _ => Ok(self.label_by_name(state, socket, name)?.into_iter().collect()),
        }
    }
}
