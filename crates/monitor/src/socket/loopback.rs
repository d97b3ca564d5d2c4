//! Ports of the loopback that the run has bound itself: who binds them, and who reaches them.

use super::{
    SocketAsker, SocketManager,
    asker::allow,
    caller_socket::Socket,
    own::BoundSocket,
    peers::owned,
    ports::{OwnPort, Port, Serves, bound_at},
};
use flask::{AccessVector, Class, Question, Sid, perm};
use mediation::state::MonitorState;
use rustix::{
    io::{Errno, Result},
    net::sockopt,
};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::OwnedFd,
};

impl SocketManager {
    /// The sandbox's own socket that listens at an address and port of the loopback.
    pub(super) fn own_port(&self, state: &MonitorState, ip: IpAddr, port: u16) -> Option<OwnPort> {
        if !ip.is_loopback() {
            return None;
        }
        let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let at_all = loopback.into_iter().map(|own| ((own, port), false));
        let places = std::iter::once(((ip, port), true)).chain(at_all);
        for (at, is_that) in places {
            let Some(Port { mut socket, serves }) = self.endpoints.ports.known(at) else {
                continue;
            };
            if !is_that && !serves.is_for(ip) {
                continue;
            }
            let Some(held) = socket.find((state, self.kept.as_ref())) else { continue };
            let own = OwnPort { owner: socket.owner, socket: held, at };
            if own.is_there() {
                self.endpoints.ports.add(at, Port { socket, serves });
                return Some(own);
            }
        }
        None
    }

    /// The port of the sandbox's own that a socket has, or had before it was shut down.
    pub(super) fn port_of(&self, socket: &OwnedFd) -> Option<Port> {
        let cookie = sockopt::socket_cookie(socket);
        let port = bound_at(socket).and_then(|at| self.endpoints.ports.known(at));
        port.filter(|port| cookie == Ok(port.socket.cookie))
    }

    /// Whether a socket has a port of the sandbox's own.
    pub(super) fn has_own_port(&self, socket: &OwnedFd) -> bool {
        self.port_of(socket).is_some()
    }
}

fn of_family(ip: IpAddr, port: u16, family: i32) -> SocketAddr {
    match ip {
        IpAddr::V4(ip) if family == libc::AF_INET6 => (ip.to_ipv6_mapped(), port).into(),
        ip => (ip, port).into(),
    }
}

/// Whether `asker` may have a port of the loopback at `ip` as the run's own.
pub(super) fn may_bind(asker: SocketAsker<'_>, socket: &Socket, ip: IpAddr) -> bool {
    socket.class == Class::TcpSocket
        && (ip.is_loopback() || ip.is_unspecified())
        && grants(asker, asker.ssid, perm::tcp_socket::LOOPBACK_BIND)
}

/// Whether `asker` may connect to what `owner` has bound.
pub(super) fn may_reach(asker: SocketAsker<'_>, owner: Sid) -> bool {
    grants(asker, owner, perm::tcp_socket::CONNECTTO)
}

fn grants(asker: SocketAsker<'_>, tsid: Sid, requested: AccessVector) -> bool {
    let question = Question { ssid: asker.ssid, tsid, tclass: Class::TcpSocket };
    asker.state.caches.socket.grants(question, requested, &avc::Hint::default())
}

/// Decides and makes a bind to a port of the loopback; the one at `ip`, or at `127.0.0.1` and `::1`
/// for all interfaces.
pub(super) fn bind(asker: SocketAsker<'_>, socket: &Socket, ip: IpAddr, port: u16) -> Result<()> {
    let object = || SocketAddr::new(ip, port).to_string();
    allow(asker, socket.class, asker.ssid, perm::tcp_socket::LOOPBACK_BIND, &object)?;
    let (at, serves) = match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST.into(), Serves::V4),
        IpAddr::V6(ip) if ip.is_unspecified() => match sockopt::ipv6_v6only(&socket.fd)? {
            true => (Ipv6Addr::LOCALHOST.into(), Serves::One),
            false => (Ipv4Addr::LOCALHOST.into(), Serves::All),
        },
        ip => (ip, Serves::One),
    };
    let known = BoundSocket::new(*asker, &socket.fd, asker.caller.int(0))?;
    rustix::net::bind(&socket.fd, &of_family(at, port, socket.family))?;
    let bound = bound_at(&socket.fd).ok_or(Errno::ADDRNOTAVAIL)?;
    asker.sockets.endpoints.ports.add(bound, Port { socket: known, serves });
    Ok(())
}

/// Decides a connect to a port of the sandbox's own, if there is one that policy lets `asker`
/// reach.
pub(super) fn reach(
    asker: SocketAsker<'_>,
    (ip, port): (IpAddr, u16),
    by_rule: Sid,
) -> Result<Option<OwnPort>> {
    let Some(own) = asker.sockets.own_port(asker.state, ip, port) else { return Ok(None) };
    let tsid = owned(*asker, Some(own.owner), by_rule)?;
    if !may_reach(asker, tsid) {
        return Ok(None);
    }
    let object = || SocketAddr::new(ip, port).to_string();
    allow(asker, Class::TcpSocket, tsid, perm::tcp_socket::CONNECTTO, &object)?;
    Ok(Some(own))
}

/// Whether nobody is there to be connected to, which the kernel would say: then nothing is denied.
pub(super) fn is_nobody(asker: SocketAsker<'_>, ip: IpAddr, port: u16) -> bool {
    let (caller, proc) = (asker.caller, &asker.state.targets.tree.proc);
    let listens = || caller.certain(proc.tcp_listens(caller.call.tid, ip, port));
    ip.is_loopback()
        && grants(asker, asker.ssid, perm::tcp_socket::LOOPBACK_BIND)
        && listens() == Ok(false)
}
