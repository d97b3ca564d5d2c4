//! The names that the sandbox itself has bound, each known by what nobody can put in its place: a
//! name in the file system by its inode, which is held for as long as it is remembered; an abstract
//! name by the socket that has it, which is held while it is used. A socket that has a name keeps
//! it to its end, so what is reached then is that socket, whoever listens at it by now: the process
//! that bound it, one that it was handed to, or one that was born with it. A socket that is not
//! found is not gone: that the kernel says (`diag.rs`). Nothing is forgotten that may be there.

use super::{diag::UnixDiag, kept::KeptSockets};
use flask::Sid;
use inode_labels::{FileNumber, Status};
use mediation::{call::Asker, state::MonitorState};
use proc::{Proc, socket_number};
use rustix::{
    io::{Errno, Result},
    net::{
        SocketAddrUnix, SocketType,
        sockopt::{socket_cookie, socket_type},
    },
};
use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use supervisor::{closing::Duplicate, thread::take_descriptor};

/// The names of sockets inside.
#[derive(Debug, Default)]
pub(crate) struct OwnNames {
    files: Mutex<Bound<FileNumber, (BoundSocket, OwnedFd)>>,
    abstracts: Mutex<Abstracts>,
    diag: UnixDiag,
}

#[derive(Debug, Default)]
struct Abstracts {
    bound: Bound<AbstractName, BoundSocket>,
    /// Those that calls under way use as names of somebody outside.
    outside: HashMap<AbstractName, Weak<()>>,
}

/// Sockets that have, or had, a name.
#[derive(Debug)]
struct Bound<K, V> {
    known: HashMap<K, V>,
    /// The oldest first, but for those that were found to be there.
    order: VecDeque<K>,
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

/// Who has an abstract name. While this is kept, nobody else can take it.
#[derive(Debug)]
pub(super) enum NameHolder {
    /// A socket that this subject inside has bound.
    Inside { owner: Sid, _socket: Duplicate },
    /// Nobody inside.
    Outside { _calls: Arc<()> },
}

/// A socket inside may have the name, and is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InDoubt;

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
        let socket = take_descriptor(pid, pid, fd).ok()?;
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
    /// Files that are held. The descriptors are the monitor's.
    const MOST_FILES: usize = 512;
    /// Abstract names that are remembered.
    const MOST_ABSTRACT: usize = 10_000;
    /// How often a bind looks whether calls still use the name as one outside, a millisecond apart;
    /// and those who has the name, if it is bound meanwhile.
    const TURNS: u32 = 100;

    pub(super) fn new(diag: UnixDiag) -> Self {
        Self { diag, ..Self::default() }
    }

    /// Whether one more file can be bound: what is gone makes room; where the kernel does not tell,
    /// what has no name any more.
    pub(super) fn has_room_for_file(&self) -> bool {
        let has_no_name = |file: &OwnedFd| rustix::fs::fstat(file).is_ok_and(|it| it.st_nlink == 0);
        self.files().make_room(Self::MOST_FILES, |(socket, file)| match self.has(socket) {
            Ok(is_there) => !is_there,
            Err(_) => has_no_name(file),
        })
    }

    /// Whether the kernel tells which file a socket is bound to.
    pub(super) fn files_are_told(&self) -> bool {
        self.diag.tells()
    }

    /// Whether a socket is bound to this file; no in doubt.
    pub(super) fn has_bound(
        &self,
        socket: &BoundSocket,
        proc: &Proc,
        (file, status): (&OwnedFd, &Status),
    ) -> bool {
        let Ok(Some((device, number))) = self.diag.file(socket.inode, socket.cookie) else {
            return false;
        };
        // Some file systems name others as the devices of their files (subvolumes of btrfs; layers
        // of an overlay), and only the list of mounts has their own.
        let is_on = || status.device == device || proc.device_of(file) == Ok(device);
        number == status.number as u32 && is_on()
    }

    /// The sandbox has bound this file.
    pub(super) fn add_file(&self, number: FileNumber, socket: BoundSocket, file: OwnedFd) {
        self.files().add(number, (socket, file));
    }

    /// Has `bind` give a socket an abstract name, which it returns: the one that was `asked` for,
    /// or what the kernel chooses. `ENOBUFS` if there are as many as are remembered.
    pub(super) fn bind_abstract(
        &self,
        asked: &AbstractName,
        socket: BoundSocket,
        bind: impl FnOnce() -> Result<AbstractName>,
    ) -> Result<()> {
        for _ in 0..Self::TURNS {
            let mut abstracts = self.abstracts();
            let reached = abstracts.outside.get(asked);
            if reached.is_some_and(|calls| calls.strong_count() > 0) {
                drop(abstracts);
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            if !abstracts.bound.make_room(Self::MOST_ABSTRACT, |socket| self.is_gone(socket)) {
                return Err(Errno::NOBUFS);
            }
            return bind().map(|name| abstracts.bound.add(name, socket));
        }
        Err(Errno::ADDRINUSE)
    }

    /// The label of who in the sandbox has bound a file.
    pub(super) fn file(&self, number: FileNumber) -> Option<Sid> {
        self.files().known.get(&number).map(|(socket, _)| socket.owner)
    }

    /// Who has this abstract name now.
    pub(super) fn abstract_name(
        &self,
        places: (&MonitorState, Option<&KeptSockets>),
        name: &AbstractName,
    ) -> std::result::Result<NameHolder, InDoubt> {
        for _ in 0..Self::TURNS {
            let before = self.abstracts().bound.known.get(name).copied();
            if let Some(mut known) = before {
                if let Some(socket) = known.find(places) {
                    self.abstracts().moved(name, known);
                    return Ok(NameHolder::Inside { owner: known.owner, _socket: socket });
                }
                if !self.is_gone(&known) {
                    return Err(InDoubt);
                }
            }
            let mut abstracts = self.abstracts();
            let now = abstracts.bound.known.get(name).map(|socket| socket.cookie);
            // Else it was bound meanwhile.
            if now == before.map(|socket| socket.cookie) {
                return Ok(NameHolder::Outside { _calls: abstracts.hold_outside(name) });
            }
        }
        Err(InDoubt)
    }

    /// Whether the kernel says that a socket is nowhere.
    fn is_gone(&self, socket: &BoundSocket) -> bool {
        self.has(socket) == Ok(false)
    }

    fn has(&self, socket: &BoundSocket) -> Result<bool> {
        self.diag.has(socket.inode, socket.cookie)
    }

    fn files(&self) -> MutexGuard<'_, Bound<FileNumber, (BoundSocket, OwnedFd)>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn abstracts(&self) -> MutexGuard<'_, Abstracts> {
        self.abstracts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Abstracts {
    /// Keeps anybody inside from binding a name until what is returned is dropped.
    fn hold_outside(&mut self, name: &AbstractName) -> Arc<()> {
        let calls = self.outside.get(name).and_then(Weak::upgrade).unwrap_or_default();
        self.outside.retain(|_, calls| calls.strong_count() > 0);
        self.outside.insert(name.clone(), Arc::downgrade(&calls));
        calls
    }

    /// Notes where a socket was found.
    fn moved(&mut self, name: &AbstractName, socket: BoundSocket) {
        let at = self.bound.known.get_mut(name);
        if let Some(at) = at.filter(|at| at.cookie == socket.cookie) {
            *at = socket;
        }
    }
}

impl<K, V> Default for Bound<K, V> {
    fn default() -> Self {
        Self { known: HashMap::new(), order: VecDeque::new() }
    }
}

impl<K: Clone + Eq + Hash, V> Bound<K, V> {
    /// How many of the oldest are looked at when there is no room.
    const LOOKS: usize = 512;

    /// Whether there is room for one more beside `most`: what is gone is forgotten.
    fn make_room(&mut self, most: usize, is_gone: impl Fn(&V) -> bool) -> bool {
        for _ in 0..Self::LOOKS.min(self.order.len()) {
            if self.known.len() < most {
                break;
            }
            let Some(oldest) = self.order.pop_front() else { break };
            match self.known.get(&oldest).is_none_or(&is_gone) {
                true => drop(self.known.remove(&oldest)),
                false => self.order.push_back(oldest),
            }
        }
        self.known.len() < most
    }

    /// Adds what has just been bound: what had the name before is gone.
    fn add(&mut self, name: K, socket: V) {
        if self.known.insert(name.clone(), socket).is_none() {
            self.order.push_back(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_kernel_does_not_tell_files_without_a_name_make_room() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let known =
            Sid::new(1).map(|owner| BoundSocket { owner, cookie: 1, inode: 1, pid: 1, fd: 0 });
        let fill = |file: &std::fs::File| {
            let own = OwnNames::default();
            for number in 0..OwnNames::MOST_FILES as u64 {
                assert!(own.has_room_for_file());
                own.add_file(((0, 0), number), known.unwrap(), file.try_clone().unwrap().into());
            }
            own.has_room_for_file()
        };
        assert!(!fill(named.as_file()));
        assert!(fill(&tempfile::tempfile().unwrap()));
    }

    #[test]
    fn only_what_is_gone_makes_room() {
        let mut bound = Bound::default();
        for name in 0..4 {
            assert!(bound.make_room(4, |_| true), "there is room");
            bound.add(name, name != 2);
        }
        assert!(!bound.make_room(4, |_| false) && bound.known.len() == 4);
        assert!(bound.make_room(4, |lives| !lives), "one is gone");
        assert!(!bound.known.contains_key(&2) && bound.known.len() == 3);
        bound.add(3, true);
        bound.add(2, true);
        assert!(!bound.make_room(4, |lives| !lives) && bound.order.len() == 4);
    }
}
