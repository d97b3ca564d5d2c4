//! The socket object manager: which sockets a process may have, and whom it may reach with them.
//! Every call that names an address is made on a duplicate of the socket, with a copy of the
//! address.

mod asker;
mod caller_socket;
mod class;
mod control;
mod create;
mod diag;
mod endpoints;
mod kept;
mod label;
mod loopback;
mod manager;
mod message;
mod names;
mod options;
mod own;
mod pair;
mod peers;
mod ports;
mod seen;
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
use rustix::{
    io::Errno,
    net::{SocketType, sockopt::socket_type},
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
    let mut connected = asker.wait(connect);
    if let Some(own) = &target.port {
        let ended = connected.as_ref().map(drop).map_err(|errno| *errno);
        if let Err(errno) = own.reached(*asker, &socket.fd, ended) {
            connected = Err(errno);
        }
    }
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
    rustix::net::listen(&socket.fd, asker.caller.int(1))?;
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
