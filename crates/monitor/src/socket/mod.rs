//! The socket object manager: which sockets a process may have, and whom it may reach with them.
//! Every call that names an address is made on a duplicate of the socket, with a copy of the
//! address.

mod control;
mod endpoints;
mod kept;
mod message;
mod names;
mod options;
mod own;
mod pair;
mod peers;
mod ports;
mod seen;

use crate::shared::SocketFiles;
use audit::Refusal;
use avc::Hint;
use flask::{AccessVector, Class, Question, Sid, perm};
use mediation::{
    call::{Answer, Asker, CallResult},
    decides,
    manager::Request,
    subject::connection,
};
use rustix::{
    io::{Errno, Result},
    net::{SocketType, sockopt::socket_type},
};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::Deref,
    os::fd::AsFd,
};
use supervisor::{
    address::{self, Address},
    closing::Duplicate,
    flight,
};

use peers::Peer;

pub(crate) use endpoints::Endpoints;
pub(crate) use kept::KeptSockets;
pub(crate) use peers::Peers;

/// The socket object manager: what it knows of addresses.
pub(crate) struct SocketManager {
    pub(crate) endpoints: Endpoints,
    pub(crate) peers: Peers,
    /// Where the kernel hands out no descriptors of others.
    pub(crate) kept: Option<KeptSockets>,
}

/// A call with its subject, at the socket object manager.
#[derive(Clone, Copy)]
pub(crate) struct SocketAsker<'a> {
    pub(crate) asker: Asker<'a>,
    pub(crate) sockets: &'a SocketManager,
    /// The files that name sockets.
    pub(crate) files: SocketFiles<'a>,
}

impl<'a> Deref for SocketAsker<'a> {
    type Target = Asker<'a>;

    fn deref(&self) -> &Asker<'a> {
        &self.asker
    }
}

decides! { pub(crate) asker: SocketAsker<'_>,
    socket => new_socket(asker),
    socketpair => pair::create(asker, class_of(asker.caller.int(0), asker.caller.int(1), asker.caller.int(2))),
    connect => connect(asker),
    bind => bind(asker),
    listen => listen(asker),
    sendto => message::sendto(asker),
    sendmsg => message::sendmsg(asker),
    sendmmsg => message::sendmmsg(asker),
    setsockopt => options::set(asker),
}

/// The class of a socket by its family, type and protocol.
pub(crate) fn class_of(family: i32, kind: i32, protocol: i32) -> Class {
    let kind = kind & 0xf;
    match (family, kind, protocol) {
        (libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_SEQPACKET, _) => Class::UnixStreamSocket,
        (libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_RAW, _) => Class::UnixDgramSocket,
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => {
            Class::TcpSocket
        }
        // UDP-Lite has UDP's calls, addresses and ports; only what its checksums cover differs.
        (
            libc::AF_INET | libc::AF_INET6,
            libc::SOCK_DGRAM,
            0 | libc::IPPROTO_UDP | libc::IPPROTO_UDPLITE,
        ) => Class::UdpSocket,
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM | libc::SOCK_RAW, _) => {
            Class::RawipSocket
        }
        (libc::AF_NETLINK, _, protocol) => match protocol {
            libc::NETLINK_ROUTE => Class::NetlinkSocket,
            libc::NETLINK_USERSOCK => Class::NetlinkUsersockSocket,
            libc::NETLINK_SOCK_DIAG => Class::NetlinkTcpdiagSocket,
            libc::NETLINK_XFRM => Class::NetlinkXfrmSocket,
            libc::NETLINK_AUDIT => Class::NetlinkAuditSocket,
            libc::NETLINK_CONNECTOR => Class::NetlinkConnectorSocket,
            libc::NETLINK_NETFILTER => Class::NetlinkNetfilterSocket,
            libc::NETLINK_KOBJECT_UEVENT => Class::NetlinkKobjectUeventSocket,
            libc::NETLINK_GENERIC => Class::NetlinkGenericSocket,
            libc::NETLINK_CRYPTO => Class::NetlinkCryptoSocket,
            _ => Class::Socket,
        },
        // Families without an object manager of their own; also TCP's relatives that the envelope
        // does not know.
        _ => Class::Socket,
    }
}

fn new_socket(asker: SocketAsker<'_>) -> CallResult {
    let [family, kind, protocol] = [0, 1, 2].map(|n| asker.caller.int(n));
    let answer = create(asker, class_of(family, kind, protocol))?;
    let Some(kept) = &asker.sockets.kept else { return Ok(answer) };
    let made = kept.make(asker)?;
    Ok(made.map_or(answer, |fd| Answer::Open { fd, cloexec: kind & libc::SOCK_CLOEXEC != 0 }))
}

fn create(asker: SocketAsker<'_>, class: Class) -> CallResult {
    let sends = matches!(class, Class::UdpSocket | Class::RawipSocket);
    if sends && asker.is_inside() && !asker.state.inside.datagrams_are_decided() {
        return Err(asker.refuse(&undecided_inside(class)));
    }
    allow(asker, class, asker.ssid, perm::socket::CREATE, &|| format!("a new {class}"))?;
    // Family, type and protocol came in registers.
    Ok(Answer::Continue)
}

/// The policy of a run inside would have no say in what such a socket reaches.
fn undecided_inside(class: Class) -> Refusal {
    Refusal {
        errno: Errno::ACCESS,
        by: "the object manager of sockets",
        tclass: class.name(),
        missing: "create",
        object: format!("a new {class}"),
        reason: "the run around has a loopback of its own, and what datagrams reach there is not decided",
        instead: "use TCP, or start the run around with a profile that leaves network.loopback out",
    }
}

fn allow(
    asker: SocketAsker<'_>,
    tclass: Class,
    tsid: Sid,
    requested: AccessVector,
    object: &dyn Fn() -> String,
) -> Result<()> {
    let hint = Hint::default();
    let request = Request { tsid, tclass, requested, hint: &hint, object };
    Ok(asker.ask(&asker.state.caches.socket, &request)?)
}

/// A duplicate of the caller's socket, and what it is.
struct Socket {
    fd: Duplicate,
    class: Class,
    family: i32,
}

impl Socket {
    /// Whether a stream has a peer or listens, which the kernel says before what is wrong with an
    /// address (`__inet_stream_connect` of `net/ipv4/af_inet.c`).
    fn is_taken(&self) -> bool {
        let listens = || rustix::net::sockopt::socket_acceptconn(&self.fd) == Ok(true);
        self.class == Class::TcpSocket && (rustix::net::getpeername(&self.fd).is_ok() || listens())
    }

    /// The socket behind descriptor `fd` of the caller.
    fn of(asker: SocketAsker<'_>, fd: i32) -> Result<Self> {
        let kept = asker.sockets.kept.as_ref().map(|kept| kept.of(asker, fd)).transpose()?;
        let fd = match kept.flatten() {
            Some(kept) if asker.state.targets.listener.is_valid(asker.caller.call.id) => kept,
            Some(_) => return Err(Errno::SRCH),
            None => asker.duplicate(fd)?,
        };
        let option = |name| supervisor::socket::option(fd.as_fd(), name);
        let family = option(libc::SO_DOMAIN)?;
        let class = class_of(family, option(libc::SO_TYPE)?, option(libc::SO_PROTOCOL)?);
        Ok(Self { fd, class, family })
    }

    /// Nothing of it is to be decided any more.
    fn is_settled(&self, asker: SocketAsker<'_>) {
        if let Some(kept) = &asker.sockets.kept {
            kept.forget(&self.fd);
        }
    }
}

/// The address at argument `n`, whose length is the next argument.
fn address(asker: SocketAsker<'_>, n: usize) -> Result<Address> {
    let len = asker.caller.int(n + 1);
    address_at(asker, asker.caller.call.args[n], len)
}

fn address_at(asker: SocketAsker<'_>, at: u64, len: i32) -> Result<Address> {
    let len = usize::try_from(len).map_err(|_| Errno::INVAL)?;
    if len > supervisor::socket::ADDRESS_MAX {
        return Err(Errno::INVAL);
    }
    Address::parse(asker.caller.buffer(at, len)?)
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
    if let (Class::TcpSocket, address::Kind::Ip(ip, port)) = (socket.class, &address.kind) {
        asker.state.records.remarks.reaches(SocketAddr::new(*ip, *port));
    }
    let peers = &asker.sockets.peers;
    let begin = |peer| peers.begin(&asker.state.targets.tree, &socket.fd, peer);
    let connecting = target.peer.clone().map(begin).transpose()?;
    let connect = || supervisor::socket::connect(socket.fd.as_fd(), target.bytes(&address));
    let mut connected = asker.wait(connect);
    if let Some(own) = &target.port {
        let ended = connected.as_ref().map(drop).map_err(|errno| *errno);
        if let Err(errno) = own.reached(asker, &socket.fd, ended) {
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

/// Has the kernel choose a port for a datagram socket, if `asker` may bind to one: it does so for
/// whatever address such a socket is to be connected to, or to send to, before it refuses that of
/// another family (`inet_dgram_connect` and `inet_send_prepare` of `net/ipv4/af_inet.c`).
fn take_port(asker: SocketAsker<'_>, socket: &Socket, address: &Address) {
    let any: IpAddr = match socket.family {
        libc::AF_INET => Ipv4Addr::UNSPECIFIED.into(),
        _ => Ipv6Addr::UNSPECIFIED.into(),
    };
    let is_foreign = !matches!(address.family(), libc::AF_UNSPEC | libc::AF_INET | libc::AF_INET6);
    if socket.class != Class::UdpSocket || !is_foreign {
        return;
    }
    let Ok(tsid) = seen::endpoint(asker, socket.class, any, 0) else { return };
    let question = Question { ssid: asker.ssid, tsid, tclass: Class::Endpoint };
    let requested = perm::endpoint::NAME_BIND;
    if asker.state.caches.socket.grants(question, requested, &Hint::default()) {
        let _ = supervisor::socket::connect(socket.fd.as_fd(), &address.bytes);
    }
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
