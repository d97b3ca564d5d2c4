//! Duplicates of the sandbox's sockets, where the kernel hands out none: filters of containers
//! refuse pidfd_getfd(2).
//!
//! The monitor makes each socket in the program's place, and keeps a duplicate until nothing of it
//! is left to be decided: a stream that is connected, or listens, is the program's alone. A
//! duplicate keeps a socket open, so what no process of the sandbox has any more is let go of.

use mediation::call::Asker;
use proc::{ProcessTree, socket_number};
use rustix::{
    io::{Errno, Result},
    net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with, sockopt::socket_cookie},
};
use std::{
    collections::{HashMap, HashSet},
    num::NonZeroU32,
    os::fd::{AsFd, OwnedFd},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use supervisor::closing::Duplicate;

/// Sockets that are kept; beyond, programs make their own, and cannot use them. The descriptors are
/// the monitor's.
const MOST: usize = 512;
/// A program gets its socket within that time.
const YOUNG: Duration = Duration::from_secs(1);
/// Between two looks at what nobody has any more.
const PAUSE: Duration = Duration::from_millis(100);

/// The duplicates, by the number of the socket in `/proc/PID/fd`.
#[derive(Debug, Default)]
pub(crate) struct KeptSockets {
    sockets: Mutex<HashMap<u64, Kept>>,
    /// When was last looked at who has them.
    looked: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Kept {
    socket: Duplicate,
    made: Instant,
    /// When a process was last seen to have it; `None` for one that none has had yet.
    seen: Option<Instant>,
}

impl Kept {
    /// Whether it is kept after a look, begun at `before`, that found it in the sandbox or did not:
    /// whoever has used it since may have got it behind the look's back.
    fn stays(&mut self, is_held: bool, before: Instant) -> bool {
        if is_held {
            self.seen = self.seen.max(Some(before));
        }
        match self.seen {
            Some(seen) => seen >= before,
            None => before.saturating_duration_since(self.made) < YOUNG,
        }
    }
}

impl KeptSockets {
    /// A new socket for the caller of socket(2), of which a duplicate is kept; `None` for those
    /// that it makes itself. What a socket may be used for must not depend on who made it: a send
    /// by netlink takes the capabilities of both who opened the socket and who sends, and packets
    /// are nobody's here.
    pub(super) fn make(&self, asker: Asker<'_>) -> Result<Option<OwnedFd>> {
        let [family, kind, protocol] = [0, 1, 2].map(|n| asker.caller.int(n));
        let is_known = match family {
            libc::AF_UNIX | libc::AF_INET | libc::AF_INET6 => {
                [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET].contains(&(kind & 0xf))
            }
            libc::AF_NETLINK => [libc::SOCK_RAW, libc::SOCK_DGRAM].contains(&(kind & 0xf)),
            _ => false,
        };
        let plain = is_known && kind & !(0xf | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) == 0;
        if !plain {
            return Ok(None);
        }
        if self.lock().len() >= MOST {
            self.let_go(&asker.state.targets.tree)?;
            if self.lock().len() >= MOST {
                return Ok(None);
            }
        }
        let mut flags = SocketFlags::CLOEXEC;
        flags.set(SocketFlags::NONBLOCK, kind & libc::SOCK_NONBLOCK != 0);
        let socket = socket_with(
            AddressFamily::from_raw(family as u16),
            SocketType::from_raw((kind & 0xf) as u32),
            flags,
            NonZeroU32::new(protocol as u32).map(Protocol::from_raw),
        )?;
        let number = rustix::fs::fstat(&socket)?.st_ino;
        let copy = socket.try_clone().map_err(|_| Errno::NFILE)?;
        let kept = Kept { socket: copy.into(), made: Instant::now(), seen: None };
        self.lock().insert(number, kept);
        Ok(Some(socket))
    }

    /// A duplicate of the socket behind descriptor `fd` of the caller; `None` if none is kept.
    pub(super) fn of(&self, asker: Asker<'_>, fd: i32) -> Result<Option<Duplicate>> {
        let proc = &asker.state.targets.tree.proc;
        let link = match proc.descriptor_link(asker.caller.call.tid, fd) {
            Err(Errno::NOENT) => return Err(Errno::BADF),
            link => link?,
        };
        let number = socket_number(&link).ok_or(Errno::NOTSOCK)?;
        let mut sockets = self.lock();
        let Some(kept) = sockets.get_mut(&number) else { return Ok(None) };
        kept.seen = Some(Instant::now());
        kept.socket.try_clone().map(|copy| Some(copy.into())).map_err(|_| Errno::NFILE)
    }

    /// The kept socket with that number in `/proc/PID/fd` and that cookie.
    pub(super) fn with_cookie(&self, number: u64, cookie: u64) -> Option<Duplicate> {
        let sockets = self.lock();
        let socket = &sockets.get(&number)?.socket;
        let copy = || socket.try_clone().ok().map(Duplicate::from);
        (socket_cookie(socket) == Ok(cookie)).then(copy).flatten()
    }

    /// Nothing of this socket is to be decided any more.
    pub(super) fn forget(&self, socket: impl AsFd) {
        if let Ok(stat) = rustix::fs::fstat(socket) {
            self.lock().remove(&stat.st_ino);
        }
    }

    /// Lets go, now and then, of what no process of the sandbox has any more.
    pub(crate) fn let_go_at_times(&self, tree: &ProcessTree) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_none_or(|looked| looked.elapsed() > PAUSE) && !self.lock().is_empty() {
            let _ = self.let_go(tree);
            *looked = Some(Instant::now());
        }
    }

    /// Lets go of what no process of the sandbox has any more. Two looks, as one may miss what
    /// passes from a process that it comes to late to one that it came to early, by birth or by
    /// message. A socket that is on its way meanwhile is lost: nobody can connect it then.
    pub(super) fn let_go(&self, tree: &ProcessTree) -> Result<()> {
        let before = Instant::now();
        let mut held = held(tree)?;
        held.extend(self::held(tree)?);
        self.lock().retain(|number, kept| kept.stays(held.contains(number), before));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Kept>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The numbers of the sockets that processes of the sandbox have.
pub(super) fn held(tree: &ProcessTree) -> Result<HashSet<u64>> {
    let of_each = tree.inside()?.into_iter().map(|pid| numbers(tree, pid).unwrap_or_default());
    Ok(of_each.flatten().collect())
}

/// The numbers of the sockets that a process has.
fn numbers(tree: &ProcessTree, pid: u32) -> Result<Vec<u64>> {
    let table = tree.proc.descriptors(pid)?;
    let number = |fd| socket_number(&table.link(fd).ok()?);
    Ok(table.numbers()?.into_iter().filter_map(number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_kept_until_a_look_that_nobody_passed_by() {
        let made = Instant::now();
        let [before, later, old] = [1, 2, 3000].map(|ms| made + Duration::from_millis(ms));
        let socket = || rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None);
        let kept = |seen| Kept { socket: socket().unwrap().into(), made, seen };

        assert!(kept(None).stays(false, before), "on its way to who asked for it");
        assert!(!kept(None).stays(false, old), "nobody has come for it");
        assert!(kept(None).stays(true, old));
        assert!(!kept(Some(made)).stays(false, before), "let go of");
        assert!(kept(Some(later)).stays(false, before), "used after the look had begun");
        let mut had = kept(None);
        assert!(had.stays(true, before) && !had.stays(false, later));
    }
}
