//! Sockets by which the monitor asks the kernel about the unix sockets of the sandbox, opened in
//! its network before anything runs there: later there may be no descriptor left for them.

use rustix::{
    io::{Errno, Result},
    net::{AddressFamily, SocketFlags, SocketType, netlink::SOCK_DIAG, socket_with},
    thread::{ThreadNameSpaceType, move_into_thread_name_spaces},
};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Two sockets in one network.
#[derive(Debug)]
pub struct DiagSockets {
    /// What the kernel is asked by (sock_diag(7)).
    pub netlink: OwnedFd,
    /// A unix socket: who cannot find it finds none.
    pub one: OwnedFd,
}

impl DiagSockets {
    /// In the network of the calling thread; `None` if there can be none.
    #[must_use]
    pub fn here() -> Option<Self> {
        let flags = SocketFlags::CLOEXEC;
        let made = |family, kind, protocol| socket_with(family, kind, flags, protocol).ok();
        Some(Self {
            netlink: made(AddressFamily::NETLINK, SocketType::DGRAM, Some(SOCK_DIAG))?,
            one: made(AddressFamily::UNIX, SocketType::DGRAM, None)?,
        })
    }

    /// In the network of `process`, which a thread enters that ends then: nobody comes back.
    pub(super) fn of(process: BorrowedFd<'_>) -> Option<Self> {
        let enter = || -> Result<Option<Self>> {
            move_into_thread_name_spaces(process, ThreadNameSpaceType::NETWORK)?;
            Ok(Self::here())
        };
        let made = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(128 << 10);
            let thread = thread.spawn_scoped(scope, enter).map_err(|_| Errno::AGAIN)?;
            thread.join().unwrap_or(Err(Errno::IO))
        });
        made.ok().flatten()
    }
}
