//! The socket object manager: which sockets a process may have, and whom it may reach with them.
//! Every call that names an address is made on a duplicate of the socket, with a copy of the
//! address.

mod asker;
mod caller_socket;
mod class;
mod connects;
mod control;
mod create;
mod diag;
mod endpoints;
mod kept;
mod loopback;
mod manager;
mod message;
mod names;
mod options;
mod own;
mod pair;
mod peers;
mod ports;
mod sender;
mod unix_names;

use asker::{address, allow};
use caller_socket::Socket;
use flask::{Class, perm};
use mediation::{
    call::{Answer, CallResult},
    decides,
    subject::connection,
};
use names::take_port;
use peers::Peer;
use ports::bound_at;
use rustix::{
    io::Errno,
    net::{Shutdown, SocketType, sockopt::socket_type},
};
use std::{net::SocketAddr, os::fd::AsFd};
use supervisor::{address::Kind, flight};

pub(crate) use asker::SocketAsker;
pub(crate) use class::class_of;
pub(crate) use diag::UnixDiag;
pub(crate) use endpoints::Endpoints;
pub(crate) use kept::KeptSockets;
pub(crate) use manager::SocketManager;
pub(crate) use peers::Peers;

decides! { pub(crate) asker: SocketAsker<'_>,
    socket => create::new_socket(asker),
    socketpair => pair::create(asker, class_of(asker.caller.int(0), asker.caller.int(1), asker.caller.int(2))),
    connect => connect(asker),
    bind => bind(asker),
    listen => listen(asker),
    sendto => message::sendto(asker),
    sendmsg => message::sendmsg(asker),
    sendmmsg => message::sendmmsg(asker),
    setsockopt => options::set(asker),
    shutdown => shutdown(asker),
}

fn connect(asker: SocketAsker<'_>) -> CallResult {
    let socket = Socket::of(asker, asker.caller.int(0))?;
    let address = address(asker, 1)?;
    allow(asker, socket.class, asker.ssid, perm::socket::CONNECT, &|| address.to_string())?;
    let target = names::reach(asker, &socket, &address, names::Use::Connect)
        .inspect_err(|_| take_port(asker, &socket, &address))?;
    if socket.class == Class::UnixStreamSocket
        && target.peer.as_ref().is_some_and(|peer| !matches!(peer, Peer::Inside(_)))
        // A stream that has a peer keeps it.
        && rustix::net::getpeername(&socket.fd).is_err()
    {
        connection::sign(*asker, &socket.fd)?;
    }
    if let (Class::TcpSocket, Kind::Ip(ip, port)) = (socket.class, &address.kind) {
        asker.state.records.remarks.reaches(SocketAddr::new(*ip, *port));
    }
    let peers = &asker.sockets.peers;
    let begin = |peer| peers.begin(&asker.state.targets.tree, &socket.fd, peer);
    let connecting = target.peer.clone().map(begin).transpose()?;
    let connect = || supervisor::socket::connect(socket.fd.as_fd(), target.bytes(&address));
    let to_own = (*asker, &asker.sockets.endpoints.ports.connects);
    let connected = match &target.port {
        Some(own) => asker.wait(|| own.connect(to_own, &socket.fd, connect)),
        None => asker.wait(connect),
    };
    if let Some(connecting) = connecting {
        peers.end(&connecting, connected.is_ok());
    }
    let ((), changed) = connected?;
    if changed && let Err(error) = names::reach(asker, &socket, &address, names::Use::Connect) {
        // Policy took it back while the peer took its time.
        let _ = flight::end_connection(&asker.state.targets.tree.proc, &socket.fd);
        return Err(error);
    }
    if matches!(socket.class, Class::UnixStreamSocket | Class::TcpSocket) {
        socket.is_settled(asker);
    }
    Ok(Answer::Return(0))
}

fn bind(asker: SocketAsker<'_>) -> CallResult {
    let socket = Socket::of(asker, asker.caller.int(0))?;
    let address = address(asker, 1)?;
    allow(asker, socket.class, asker.ssid, perm::socket::BIND, &|| address.to_string())?;
    match (names::bind(asker, &socket, &address), &asker.sockets.kept) {
        // By one that nobody has any more, perhaps.
        (Err(Errno::ADDRINUSE), Some(kept)) => {
            kept.let_go(&asker.state.targets.tree)?;
            names::bind(asker, &socket, &address)?;
        }
        (bound, _) => bound?,
    }
    Ok(Answer::Return(0))
}

/// It comes here only where ports can be the run's own: a socket that listens at one stops when no
/// connect to it is under way any more.
fn shutdown(asker: SocketAsker<'_>) -> CallResult {
    let fd = asker.caller.int(0);
    if let Some(kept) = &asker.sockets.kept
        && kept.of(*asker, fd)?.is_none()
    {
        // One that listens at a port of the run's own is kept, and there is no way to this one.
        return Ok(Answer::Continue);
    }
    let socket = Socket::of(asker, fd)?;
    let how = match asker.caller.int(1) {
        libc::SHUT_RD => Shutdown::Read,
        libc::SHUT_WR => Shutdown::Write,
        libc::SHUT_RDWR => Shutdown::Both,
        _ => return Err(Errno::INVAL),
    };
    let ports = &asker.sockets.endpoints.ports;
    let stops = socket.class == Class::TcpSocket && how != Shutdown::Write;
    let _ending = stops.then(|| ports.connects.end_all(&socket.fd)).transpose()?;
    rustix::net::shutdown(&socket.fd, how)?;
    Ok(Answer::Return(0))
}

/// A socket that has no port yet gets one here, so this is a bind to whatever the kernel chooses.
fn listen(asker: SocketAsker<'_>) -> CallResult {
    let socket = Socket::of(asker, asker.caller.int(0))?;
    if !matches!(socket_type(&socket.fd)?, SocketType::STREAM | SocketType::SEQPACKET) {
        // Nobody connects to it.
        return Err(Errno::OPNOTSUPP);
    }
    let object = || "a socket to listen at".to_owned();
    allow(asker, socket.class, asker.ssid, perm::socket::LISTEN, &object)?;
    names::listen(asker, &socket)?;
    let own = asker.sockets.port_of(&socket.fd);
    rustix::net::listen(&socket.fd, asker.caller.int(1))?;
    // One that was shut down can have another port by now.
    if let Some((at, port)) = bound_at(&socket.fd).zip(own) {
        asker.sockets.endpoints.ports.add(at, port);
    }
    if socket.class == Class::TcpSocket
        && let Ok(own) = rustix::net::getsockname(&socket.fd).and_then(SocketAddr::try_from)
    {
        asker.state.records.remarks.serves(own);
    }
    if own::AbstractName::of(&socket.fd).is_err() && !asker.sockets.has_own_port(&socket.fd) {
        socket.is_settled(asker);
    }
    Ok(Answer::Return(0))
}
