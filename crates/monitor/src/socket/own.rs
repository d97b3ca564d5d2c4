//! The names that the sandbox itself has bound, each known by what nobody can put in its place: a
//! name in the file system by its inode, which is held for as long as it is remembered; an abstract
//! name by the socket that has it, which is held while it is used. A socket that has a name keeps
//! it to its end, so what is reached then is that socket, whoever listens at it by now: the process
//! that bound it, one that it was handed to, or one that was born with it.

use super::kept::KeptSockets;
use flask::Sid;
use inode_labels::FileNumber;
use mediation::{call::Asker, state::MonitorState};
use proc::socket_number;
use rustix::{
    io::{Errno, Result},
    net::{
        SocketAddrUnix, SocketType,
        sockopt::{socket_cookie, socket_type},
    },
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};
use std::{
    collections::{HashMap, VecDeque},
    os::fd::{AsFd, OwnedFd},
    sync::{Mutex, MutexGuard, PoisonError},
};
use supervisor::closing::Duplicate;

/// The names of sockets inside.
#[derive(Debug, Default)]
pub(crate) struct OwnNames {
    files: Mutex<Files>,
    abstracts: Mutex<HashMap<AbstractName, BoundSocket>>,
}

#[derive(Debug, Default)]
struct Files {
    known: HashMap<FileNumber, (Sid, OwnedFd)>,
    /// The oldest first.
    order: VecDeque<FileNumber>,
}

/// An abstract name as the kernel tells it from others: sockets of each type have names of their
/// own (`unix_abstract_hash` of `net/unix/af_unix.c`), so that what has a name here does not keep
/// somebody outside from having it, too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AbstractName {
    kind: SocketType,
    name: Vec<u8>,
}

impl AbstractName {
    /// The name that a socket has; an error for one that has none.
    pub(super) fn of(socket: &OwnedFd) -> Result<Self> {
        let name = SocketAddrUnix::try_from(rustix::net::getsockname(socket)?)?;
        Self::reached(socket, name.abstract_name().ok_or(Errno::INVAL)?)
    }

    /// What a socket reaches at `name`.
    pub(super) fn reached(socket: impl AsFd, name: &[u8]) -> Result<Self> {
        Ok(Self { kind: socket_type(socket)?, name: name.to_vec() })
    }
}

/// A socket that has a name or a port, and where it was seen last.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundSocket {
    pub(super) owner: Sid,
    /// What tells it from all others that ever were (`SO_COOKIE` of socket(7)).
    pub(super) cookie: u64,
    /// Its number in `/proc/PID/fd`.
    inode: u64,
    pid: u32,
    fd: i32,
}

/// Whose the socket behind an abstract name is, and a hold on it: meanwhile nobody else can take
/// the name.
#[derive(Debug)]
pub(super) struct HeldName {
    pub(super) owner: Sid,
    pub(super) socket: Duplicate,
}

impl BoundSocket {
    /// What is known of a socket that `asker` has at its descriptor `fd`.
    pub(super) fn new(asker: Asker<'_>, socket: &OwnedFd, fd: i32) -> Result<Self> {
        Ok(Self {
            owner: asker.ssid,
            cookie: socket_cookie(socket)?,
            inode: rustix::fs::fstat(socket)?.st_ino,
            pid: asker.caller.identity()?.pid,
            fd,
        })
    }

    /// The socket, which is held; `None` if it is nowhere.
    pub(super) fn find(
        &mut self,
        (state, kept): (&MonitorState, Option<&KeptSockets>),
    ) -> Option<Duplicate> {
        let kept = kept.and_then(|kept| kept.with_cookie(self.inode, self.cookie));
        kept.or_else(|| self.hold(state))
    }

    /// The socket, wherever in the sandbox it is open; `None` if it is nowhere.
    fn hold(&mut self, state: &MonitorState) -> Option<Duplicate> {
        if let Some(socket) = self.at(self.pid, self.fd) {
            return Some(socket);
        }
        let inside = state.targets.tree.inside().ok()?;
        // Who was born with it has it where its parent has.
        let born = inside.iter().find_map(|pid| Some((*pid, self.fd, self.at(*pid, self.fd)?)));
        let (pid, fd, socket) =
            born.or_else(|| inside.iter().find_map(|pid| self.among(state, *pid)))?;
        (self.pid, self.fd) = (pid, fd);
        Some(socket)
    }

    fn at(&self, pid: u32, fd: i32) -> Option<Duplicate> {
        let pidfd = pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()?;
        let socket = Duplicate::from(pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty()).ok()?);
        (socket_cookie(&socket) == Ok(self.cookie)).then_some(socket)
    }

    /// The same, where the process has it at another number.
    fn among(&self, state: &MonitorState, pid: u32) -> Option<(u32, i32, Duplicate)> {
        let table = state.targets.tree.proc.descriptors(pid).ok()?;
        let is_it =
            |fd: &i32| table.link(*fd).is_ok_and(|it| socket_number(&it) == Some(self.inode));
        let mut numbers = table.numbers().ok()?.into_iter().filter(is_it);
        numbers.find_map(|fd| Some((pid, fd, self.at(pid, fd)?)))
    }
}

impl OwnNames {
    /// Files that are held; beyond, the oldest are forgotten, and reached as anybody's. The
    /// descriptors are the monitor's.
    const MOST_FILES: usize = 512;
    /// Abstract names that are remembered; beyond, all of the past are forgotten.
    const MOST_ABSTRACT: usize = 10_000;

    /// The sandbox has bound this file.
    pub(super) fn add_file(&self, number: FileNumber, owner: Sid, file: OwnedFd) {
        let mut files = self.files();
        if files.known.len() >= Self::MOST_FILES {
            files.let_go();
        }
        files.known.insert(number, (owner, file));
        files.order.push_back(number);
    }

    /// The sandbox has bound this abstract name.
    pub(super) fn add_abstract(&self, name: AbstractName, socket: BoundSocket) {
        let mut abstracts = self.abstracts();
        if abstracts.len() >= Self::MOST_ABSTRACT {
            abstracts.clear();
        }
        abstracts.insert(name, socket);
    }

    /// The label of who in the sandbox has bound a file.
    pub(super) fn file(&self, number: FileNumber) -> Option<Sid> {
        self.files().known.get(&number).map(|(owner, _)| *owner)
    }

    /// The socket of the sandbox that has this abstract name now.
    pub(super) fn abstract_name(
        &self,
        places: (&MonitorState, Option<&KeptSockets>),
        name: &AbstractName,
    ) -> Option<HeldName> {
        let mut known = *self.abstracts().get(name)?;
        let socket = known.find(places)?;
        if let Some(at) = self.abstracts().get_mut(name)
            && at.cookie == known.cookie
        {
            *at = known;
        }
        Some(HeldName { owner: known.owner, socket })
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn abstracts(&self) -> MutexGuard<'_, HashMap<AbstractName, BoundSocket>> {
        self.abstracts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    /// Lets go of files that have no name any more, and so cannot be reached; without one, of the
    /// oldest.
    fn let_go(&mut self) {
        let named = |file: &OwnedFd| rustix::fs::fstat(file).is_ok_and(|it| it.st_nlink > 0);
        self.known.retain(|_, (_, file)| named(file));
        let known = &mut self.known;
        self.order.retain(|number| known.contains_key(number));
        while known.len() >= OwnNames::MOST_FILES
            && let Some(oldest) = self.order.pop_front()
        {
            known.remove(&oldest);
        }
    }
}
