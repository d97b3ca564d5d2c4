//! Who sends by a local socket that has one peer, where sends are decided: the program itself, if
//! nobody can exchange its descriptor meanwhile; else the monitor, whom the receiver then sees.

use super::{SocketAsker, caller_socket::Socket};
use audit::Refusal;
use rustix::{
    io::{Errno, Result},
    net::{SocketType, getpeername, sockopt::socket_type},
};
use std::sync::atomic::Ordering;

/// Whether it is a local socket of packets (`SOCK_SEQPACKET`).
pub(super) fn is_of_packets(socket: &Socket) -> Result<bool> {
    Ok(socket.family == libc::AF_UNIX && socket_type(&socket.fd)? == SocketType::SEQPACKET)
}

/// Whether the program may send itself, as such a socket, or a local stream, heeds no address.
/// Another thread, or a process with the same table of descriptors, could put another socket at its
/// number until the kernel looks, or have done so just now: so first it is seen that there is none.
pub(super) fn sends_itself(asker: SocketAsker<'_>) -> Result<bool> {
    let status = asker.state.targets.tree.proc.status(asker.caller.call.tid);
    let is_alone = asker.caller.certain(status)?.threads() == Some(1)
        && !asker.state.shares_descriptors.load(Ordering::SeqCst);
    if !is_alone {
        return Ok(false);
    }
    let socket = Socket::of(asker, asker.caller.int(0))?;
    let has_one_peer = [SocketType::STREAM, SocketType::SEQPACKET];
    Ok(socket.family == libc::AF_UNIX && has_one_peer.contains(&socket_type(&socket.fd)?))
}

/// Whether the monitor may send a packet: where the peer has no name, as the other end of a pair
/// that the run has made. Another may be a port, or a service, that knows its client by who sent.
pub(super) fn allow_packet(asker: SocketAsker<'_>, socket: &Socket) -> Result<()> {
    // Without a name, an address is its family alone.
    let peer = getpeername(&socket.fd)?.ok_or(Errno::NOTCONN)?;
    let has_name = peer.addr_len() as usize > size_of::<libc::sa_family_t>();
    let is_given = asker.state.given.has(&rustix::fs::fstat(&socket.fd)?);
    if !has_name && !is_given {
        return Ok(());
    }
    Err(asker.refuse(&Refusal {
        object: "a packet (SOCK_SEQPACKET) to a socket with a name, or by one that was given".to_owned(),
        reason: "this profile grants datagrams, so the monitor sends in the place of a process with several threads, and a \
                 service would take the monitor for its client",
        ..in_its_place(asker, socket)
    }))
}

/// The refusal of credentials that would be the monitor's.
pub(super) fn refuse_credentials(asker: SocketAsker<'_>, socket: &Socket) -> Errno {
    asker.refuse(&Refusal {
        object: "credentials (SCM_CREDENTIALS)".to_owned(),
        reason: "this profile grants datagrams, so the monitor sends in the place of a process with several threads, and by \
                 every socket of datagrams: its credentials would be the monitor's",
        ..in_its_place(asker, socket)
    })
}

fn in_its_place(asker: SocketAsker<'_>, socket: &Socket) -> Refusal {
    Refusal {
        errno: Errno::OPNOTSUPP,
        by: "the socket object manager",
        tclass: socket.class.name(),
        missing: asker.number.name(),
        object: String::new(),
        reason: "",
        instead: "send by write(2) or send(2), of which the kernel tells who sent them (SO_PASSCRED); or from a process with \
                  one thread, by a stream or packets",
    }
}
