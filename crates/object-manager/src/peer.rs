//! Who has connected.

use runs::{Client, Unknown};
use rustix::net::sockopt::socket_peercred;
use std::{io, os::fd::BorrowedFd};

/// The process at the other end of a unix socket.
#[derive(Debug)]
pub struct Peer {
    pid: u32,
    uid: u32,
    /// Of a process in a sandbox.
    client: Option<Client>,
}

impl Peer {
    /// Its number. Of a process in a sandbox, the process itself, and not the monitor that
    /// connected for it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its user.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The security context that its run vouches for; `None` for a process outside of every
    /// sandbox: the program knows that one by its user, or not at all.
    #[must_use]
    pub fn context(&self) -> Option<&str> {
        self.client.as_ref().map(Client::context)
    }

    /// Whether no process of its run has entered another domain since. If not, ask for the peer
    /// again: who has entered another is not vouched for any more.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.client.as_ref().is_none_or(Client::is_current)
    }
}

/// The process that connected a unix socket, as the kernel and the monitor of its run name it.
///
/// # Errors
///
/// [`Unknown`] if it is not certain: grant nothing.
pub fn peer(socket: BorrowedFd<'_>) -> Result<Peer, Unknown> {
    if let Some(client) = runs::client(socket)? {
        let process = client.process();
        let (pid, uid) = (process.pid().cast_unsigned(), process.uid());
        return Ok(Peer { pid, uid, client: Some(client) });
    }
    let credentials = socket_peercred(socket).map_err(io::Error::from)?;
    let pid = credentials.pid.as_raw_nonzero().get().cast_unsigned();
    Ok(Peer { pid, uid: credentials.uid.as_raw(), client: None })
}
