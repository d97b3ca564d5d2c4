//! The objects that addresses name: endpoints of the network, sockets in the file system, abstract
//! names.

use super::{
    SocketAsker,
    asker::allow,
    caller_socket::Socket,
    endpoints::endpoint,
    loopback,
    own::{AbstractName, BoundSocket, InDoubt, NameHolder},
    peers::{Peer, abstract_label_for, owned},
    ports::OwnPort,
};
use crate::shared::Way;
use audit::Refusal;
use avc::Hint;
use file_manager::confined;
use flask::{AccessVector, Class, Question, Sid, perm};
use inode_labels::Status;
use landlock::AccessFs;
use mediation::subject::connection::PREFIX;
use proc::path_of;
use rustix::io::{Errno, Result};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};
use supervisor::{
    address::{Address, Kind, unix_bytes},
    closing::Duplicate,
};

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Connect,
    Send,
}

/// An address that may be used, in the form in which the monitor uses it.
#[derive(Default)]
pub(super) struct ResolvedAddress {
    /// The address that was decided, where it is spelled otherwise than by the program.
    bytes: Option<Vec<u8>>,
    /// What keeps it the one that was decided: the socket's file, or who has the name.
    _hold: Option<Duplicate>,
    _name: Option<NameHolder>,
    /// Who has the local name that it was decided as.
    pub(super) peer: Option<Peer>,
    /// The sandbox's own server that it was decided as.
    pub(super) port: Option<OwnPort>,
}

impl ResolvedAddress {
    pub(super) fn bytes<'a>(&'a self, address: &'a Address) -> &'a [u8] {
        self.bytes.as_ref().unwrap_or(&address.bytes)
    }
}

/// Decides whether `asker` may reach `address` with `socket`.
pub(super) fn reach(
    asker: SocketAsker<'_>,
    socket: &Socket,
    address: &Address,
    usage: Use,
) -> Result<ResolvedAddress> {
    let object = || shown(socket, address);
    let peer = match socket.class {
        Class::UnixStreamSocket => perm::unix_stream_socket::CONNECTTO,
        Class::UnixDgramSocket => perm::unix_dgram_socket::SENDTO,
        _ => AccessVector::NONE,
    };
    match &address.kind {
        // To send to no address, the kernel takes the bytes behind it for one of the socket's
        // family. A stream that has let go of its peer could listen at the port it had.
        Kind::None if usage == Use::Connect && may_let_go(socket) => {}
        _ if usage == Use::Send && address.family() != socket.family => {
            return Err(asker.refuse(&of_another_family(socket, object())));
        }
        Kind::Ip(ip, port) if is_ip(socket.family) => {
            return reach_endpoint(asker, socket, (address, *ip, *port), usage);
        }
        Kind::Path(path) if socket.family == libc::AF_UNIX => {
            return reach_file(asker, socket, path, peer);
        }
        Kind::Abstract(name) if socket.family == libc::AF_UNIX => {
            let holder = asker.sockets.own_abstract_name(asker.state, &socket.fd, name)?;
            let holder = holder.map_err(|InDoubt| asker.refuse(&in_doubt(socket, object())))?;
            let (owner, named) = match &holder {
                NameHolder::Inside { owner, .. } => (Some(*owner), Peer::Inside(*owner)),
                NameHolder::Outside { .. } => (None, Peer::Abstract(name.clone())),
            };
            let tsid = owned(*asker, owner, abstract_label_for(*asker, name))?;
            allow(asker, socket.class, tsid, peer, &object)?;
            return Ok(ResolvedAddress {
                _name: Some(holder),
                peer: Some(named),
                ..ResolvedAddress::default()
            });
        }
        // Netlink and the like: `connect` on the socket itself has been asked for.
        Kind::Other(family) if i32::from(*family) == socket.family && !is_ip(socket.family) => {}
        Kind::None => return Err(no_address(socket, address)),
        _ if usage == Use::Connect && socket.is_taken() => return Err(Errno::ISCONN),
        _ => return Err(no_address(socket, address)),
    }
    Ok(ResolvedAddress::default())
}

/// An endpoint of the network; or a server of the sandbox's own, where no rule grants that.
fn reach_endpoint(
    asker: SocketAsker<'_>,
    socket: &Socket,
    (address, ip, port): (&Address, IpAddr, u16),
    usage: Use,
) -> Result<ResolvedAddress> {
    let requested = match usage {
        Use::Connect => perm::endpoint::NAME_CONNECT,
        Use::Send => perm::endpoint::SENDTO,
    };
    let ip = reached(socket, ip);
    let tsid = endpoint(asker, socket.class, ip, port)?;
    let may_be_own = socket.class == Class::TcpSocket && usage == Use::Connect;
    if may_be_own && !grants(asker, tsid, requested) {
        if let Some(port) = loopback::reach(asker, (ip, port), tsid)? {
            let bytes = Some(address.of_host(port.ip())?);
            return Ok(ResolvedAddress { bytes, port: Some(port), ..ResolvedAddress::default() });
        }
        if loopback::is_nobody(asker, ip, port) {
            return Err(Errno::CONNREFUSED);
        }
    }
    allow(asker, Class::Endpoint, tsid, requested, &|| shown(socket, address))?;
    // The kernel is told which host that is.
    Ok(ResolvedAddress { bytes: Some(address.of_host(ip)?), ..ResolvedAddress::default() })
}

/// What the kernel says of an address of another family than the socket's.
fn no_address(socket: &Socket, address: &Address) -> Errno {
    // `struct sockaddr_in`, and `SIN6_LEN_RFC2133` of `net/ipv6.h`.
    let least = match socket.family {
        libc::AF_UNIX | libc::AF_NETLINK => return Errno::INVAL,
        libc::AF_INET => 16,
        libc::AF_INET6 => 24,
        _ => 0,
    };
    if address.bytes.len() < least { Errno::INVAL } else { Errno::AFNOSUPPORT }
}

/// The refusal to reach a name that a socket inside may have, which is not found.
fn in_doubt(socket: &Socket, object: String) -> Refusal {
    Refusal {
        errno: Errno::ACCESS,
        by: "the socket object manager",
        tclass: socket.class.name(),
        missing: if socket.class == Class::UnixDgramSocket { "sendto" } else { "connectto" },
        object,
        reason: "a socket that this run has bound may still have the name, and no process of the run is found to have it \
                 open: it is neither taken for the run's own nor for a service outside",
        instead: "keep it open in a process while it has the name, or close it; the kernel tells of closed ones by its module \
                  unix_diag",
    }
}

/// The refusal of one more name, where as many are remembered as can be.
fn no_room(socket: &Socket, object: String) -> Refusal {
    Refusal {
        errno: Errno::NOBUFS,
        by: "the socket object manager",
        tclass: socket.class.name(),
        missing: "bind",
        object,
        reason: "this run has bound so many names that the monitor remembers no more, and of those none is known to be closed",
        instead: "close sockets that are not needed: 512 can have names in files, 10,000 abstract ones",
    }
}

/// The refusal of a message to an address of another family than the socket's.
fn of_another_family(socket: &Socket, object: String) -> Refusal {
    Refusal {
        errno: Errno::AFNOSUPPORT,
        by: "the socket object manager",
        tclass: socket.class.name(),
        missing: "sendto",
        object,
        reason: "the address is not of the socket's family; the kernel would take its bytes for another address, which \
                 nobody has decided",
        instead: "send to an address of the socket's own family, which network.connect can grant",
    }
}

/// An address as profiles name it: `/udp` behind it where it is one of datagrams.
fn shown(socket: &Socket, address: &Address) -> String {
    match (&address.kind, socket.class) {
        (Kind::Ip(..), Class::UdpSocket) => format!("{address}/udp"),
        _ => address.to_string(),
    }
}

/// Whom the kernel reaches by an address: by none at all, this machine, at the address that the
/// socket itself is bound to (`ip_route_output_key_hash_rcu` of `net/ipv4/route.c`), or at that of
/// the loopback (`tcp_v6_connect` of `net/ipv6/tcp_ipv6.c`).
fn reached(socket: &Socket, ip: IpAddr) -> IpAddr {
    if !ip.is_unspecified() {
        return ip;
    }
    let own = rustix::net::getsockname(&socket.fd).and_then(SocketAddr::try_from);
    let own = own.map(|own| own.ip());
    match (ip, own.map(|own| own.to_canonical())) {
        (IpAddr::V4(_), Ok(IpAddr::V4(own))) if !own.is_unspecified() => own.into(),
        (IpAddr::V6(_), Ok(IpAddr::V6(_))) => Ipv6Addr::LOCALHOST.into(),
        _ => Ipv4Addr::LOCALHOST.into(),
    }
}

/// Whether a socket without a peer reaches nothing that it did not before.
fn may_let_go(socket: &Socket) -> bool {
    !is_ip(socket.family) || matches!(socket.class, Class::UdpSocket | Class::RawipSocket)
}

pub(super) fn is_ip(family: i32) -> bool {
    matches!(family, libc::AF_INET | libc::AF_INET6)
}

/// A socket that the sandbox has bound carries its owner's label; any other, its file's.
fn reach_file(
    asker: SocketAsker<'_>,
    socket: &Socket,
    path: &Path,
    requested: AccessVector,
) -> Result<ResolvedAddress> {
    asker.same_ids()?;
    let (held, seen) = asker.files.find(*asker, path)?;
    let owner = asker.sockets.endpoints.own.file(seen.status.file_number());
    let tsid = owned(*asker, owner, seen.label.sid)?;
    // A link and a relative path are other names of it: who is asked, is asked about the socket.
    let path = match path_of(&asker.state.targets.tree, &held) {
        // The sandbox's own, too deep for the kernel to say where.
        Err(Errno::NAMETOOLONG) if owner.is_some() => path.to_owned(),
        found => found?,
    };
    allow(asker, socket.class, tsid, requested, &|| format!("unix:{}", path.display()))?;
    let bytes = unix_bytes(asker.state.on_behalf.fs_state.path_of(&held).as_bytes())?;
    let peer = match owner {
        Some(owner) => Peer::Inside(owner),
        None => Peer::File { status: seen.status, path },
    };
    let bytes = Some(bytes);
    Ok(ResolvedAddress {
        bytes,
        _hold: Some(held.into()),
        peer: Some(peer),
        ..ResolvedAddress::default()
    })
}

/// Decides and makes a bind.
pub(super) fn bind(asker: SocketAsker<'_>, socket: &Socket, address: &Address) -> Result<()> {
    let object = || shown(socket, address);
    match &address.kind {
        Kind::Ip(ip, port) if is_ip(socket.family) => {
            let tsid = endpoint(asker, socket.class, *ip, *port)?;
            let requested = perm::endpoint::NAME_BIND;
            if loopback::may_bind(asker, socket, *ip) && !grants(asker, tsid, requested) {
                return loopback::bind(asker, socket, *ip, *port);
            }
            allow(asker, Class::Endpoint, tsid, requested, &object)?;
        }
        Kind::Path(path) if socket.family == libc::AF_UNIX => {
            return bind_file(asker, socket, path, address);
        }
        // Names that begin like this say who has connected: the monitor alone gives them.
        Kind::Abstract(name) if name.starts_with(PREFIX) => return Err(Errno::ACCESS),
        Kind::Abstract(name) if socket.family == libc::AF_UNIX => {
            let known = BoundSocket::new(*asker, &socket.fd, asker.caller.int(0))?;
            let asked = AbstractName::reached(&socket.fd, name)?;
            let bind = || {
                supervisor::socket::bind(socket.fd.as_fd(), &address.bytes)?;
                // Without a name given, the kernel has chosen one.
                AbstractName::of(&socket.fd)
            };
            let bound = asker.sockets.endpoints.own.bind_abstract(&asked, known, bind);
            return bound.map_err(|errno| match errno {
                Errno::NOBUFS => asker.refuse(&no_room(socket, object())),
                errno => errno,
            });
        }
        Kind::None | Kind::Other(_) if !is_ip(socket.family) => {}
        _ => return Err(no_address(socket, address)),
    }
    supervisor::socket::bind(socket.fd.as_fd(), &address.bytes)
}

/// Decides a listen: also at the port that a socket was bound to, which policy may have taken back
/// since.
pub(super) fn listen(asker: SocketAsker<'_>, socket: &Socket) -> Result<()> {
    if !is_ip(socket.family) {
        return Ok(());
    }
    let own = SocketAddr::try_from(rustix::net::getsockname(&socket.fd)?)?;
    let ip = own.ip().to_canonical();
    let object = || own.to_string();
    if asker.sockets.has_own_port(&socket.fd) {
        let requested = perm::tcp_socket::LOOPBACK_BIND;
        return allow(asker, socket.class, asker.ssid, requested, &object);
    }
    let names = &asker.sockets.endpoints;
    let asked = names.label_before(socket.class, ip, own.port()).is_some();
    // A port that the kernel has chosen was decided as 0.
    let port = if asked || names.has_forgotten() { own.port() } else { 0 };
    let tsid = endpoint(asker, socket.class, ip, port)?;
    let requested = perm::endpoint::NAME_BIND;
    if own.port() == 0 && loopback::may_bind(asker, socket, ip) && !grants(asker, tsid, requested) {
        return loopback::bind(asker, socket, ip, 0);
    }
    allow(asker, Class::Endpoint, tsid, requested, &object)
}

/// Whether a rule about the endpoint grants it to `asker`.
fn grants(asker: SocketAsker<'_>, tsid: Sid, requested: AccessVector) -> bool {
    let question = Question { ssid: asker.ssid, tsid, tclass: Class::Endpoint };
    asker.state.caches.socket.grants(question, requested, &Hint::default())
}

fn bind_file(
    asker: SocketAsker<'_>,
    socket: &Socket,
    path: &Path,
    address: &Address,
) -> Result<()> {
    asker.same_ids()?;
    let own = &asker.sockets.endpoints.own;
    let known = BoundSocket::new(*asker, &socket.fd, asker.caller.int(0))?;
    if !own.has_room_for_file() {
        return Err(asker.refuse(&no_room(socket, shown(socket, address))));
    }
    let bind = |way: Way<'_>| match way {
        Way::Below(parent) => bind_below(parent, socket, &address.bytes),
        // getsockname(2) will tell this path.
        Way::Fixed(path) => supervisor::socket::bind(socket.fd.as_fd(), &unix_bytes(&path)?),
    };
    let proc = &asker.state.targets.tree.proc;
    let is_it = |file: &OwnedFd, status: &Status| own.has_bound(&known, proc, (file, status));
    let is_it = own.files_are_told().then_some(is_it);
    if let Some((status, made)) = asker.files.make(*asker, path, bind, is_it)? {
        own.add_file(status.file_number(), known, made);
    }
    Ok(())
}

/// Binds by the path that the program gave, which getsockname(2) will tell. The kernel walks that
/// path once more, so a thread does it that Landlock lets make sockets nowhere but below `parent`,
/// which was decided.
fn bind_below(parent: &OwnedFd, socket: &Socket, address: &[u8]) -> Result<()> {
    let rights = AccessFs::MakeSock.into();
    confined(rights, (parent, rights), || supervisor::socket::bind(socket.fd.as_fd(), address))
}

/// Has the kernel choose a port for a datagram socket, if `asker` may bind to one.
///
/// The kernel chooses one whatever the address is that such a socket is to be connected to, or to
/// send to. Only then does it refuse an address of another family (`inet_dgram_connect` and
/// `inet_send_prepare` of `net/ipv4/af_inet.c`).
pub(super) fn take_port(asker: SocketAsker<'_>, socket: &Socket, address: &Address) {
    let any: IpAddr = match socket.family {
        libc::AF_INET => Ipv4Addr::UNSPECIFIED.into(),
        _ => Ipv6Addr::UNSPECIFIED.into(),
    };
    let is_foreign = !matches!(address.family(), libc::AF_UNSPEC | libc::AF_INET | libc::AF_INET6);
    if socket.class != Class::UdpSocket || !is_foreign {
        return;
    }
    let Ok(tsid) = endpoint(asker, socket.class, any, 0) else { return };
    let question = Question { ssid: asker.ssid, tsid, tclass: Class::Endpoint };
    let requested = perm::endpoint::NAME_BIND;
    if asker.state.caches.socket.grants(question, requested, &Hint::default()) {
        let _ = supervisor::socket::connect(socket.fd.as_fd(), &address.bytes);
    }
}
