//! Ports of the machine's loopback that the run has bound itself, where it shares the network with
//! the machine: what it connects to there is a socket of its own.
//!
//! A port is known by the socket that has it. While that listens and is held, nobody else listens
//! at its address and port: `SO_REUSEPORT`, by which sockets share one, is refused to the TCP
//! sockets of such a run (`options.rs`). Whether it still listens is looked at again once a connect
//! has come to an end. A server that would listen at every interface listens at the loopback alone.

use super::{Socket, SocketAsker, SocketManager, allow, own::BoundSocket, seen::owned};
use flask::{AccessVector, Class, Question, Sid, perm};
use mediation::state::MonitorState;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, Result},
    net::{getsockname, sockopt},
};
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, OwnedFd},
    sync::{Mutex, MutexGuard, PoisonError},
};
use supervisor::{closing::Duplicate, flight, socket::tcp_state};

/// `TCP_ESTABLISHED` of `net/tcp_states.h`.
const ESTABLISHED: u8 = 1;
/// How long a connect may take whose caller does not wait: one to a listener whose queue is full
/// goes on trying, and whom it would reach then, nobody has decided.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The ports of the sandbox's own, by the address at which they are bound.
#[derive(Debug, Default)]
pub(crate) struct OwnPorts(Mutex<HashMap<(IpAddr, u16), Port>>);

/// A port, and who has it.
#[derive(Clone, Copy, Debug)]
struct Port {
    socket: BoundSocket,
    serves: Serves,
}

/// The addresses of the loopback that a server is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serves {
    /// The one that it is bound to.
    One,
    /// All of IPv4: it was to be bound to `0.0.0.0`.
    V4,
    /// All: it was to be bound to `::`.
    All,
}

impl Serves {
    fn is_for(self, ip: IpAddr) -> bool {
        match self {
            Self::One => false,
            Self::V4 => ip.is_ipv4(),
            Self::All => true,
        }
    }
}

/// A socket of the sandbox that listens, and a hold on it: it goes on having its port.
#[derive(Debug)]
pub(super) struct OwnPort {
    pub(super) owner: Sid,
    socket: Duplicate,
    at: (IpAddr, u16),
}

impl OwnPorts {
    /// Ports that are remembered; beyond, all of the past are forgotten.
    const MOST: usize = 10_000;

    fn add(&self, at: (IpAddr, u16), port: Port) {
        let mut ports = self.ports();
        if ports.len() >= Self::MOST {
            ports.clear();
        }
        ports.insert(at, port);
    }

    fn known(&self, at: (IpAddr, u16)) -> Option<Port> {
        self.ports().get(&at).copied()
    }

    fn ports(&self) -> MutexGuard<'_, HashMap<(IpAddr, u16), Port>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnPort {
    /// Where it is bound.
    pub(super) fn ip(&self) -> IpAddr {
        self.at.0
    }

    fn listens(&self) -> bool {
        sockopt::socket_acceptconn(&self.socket) == Ok(true)
    }

    /// What is to be said of a connect to it that has `ended`, and that `socket` made: an error
    /// where it may have reached somebody else, or may reach somebody else later.
    pub(super) fn reached(
        &self,
        asker: SocketAsker<'_>,
        socket: &OwnedFd,
        ended: Result<()>,
    ) -> Result<()> {
        let is_under_way = ended == Err(Errno::INPROGRESS);
        if is_under_way {
            let mut events = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)];
            let _ = poll(&mut events, Some(&PATIENCE));
        }
        let state = tcp_state(socket.as_fd())?;
        if (ended.is_ok() || is_under_way) && (state != ESTABLISHED || !self.listens()) {
            let _ = flight::end_connection(&asker.state.targets.tree.proc, socket);
            return Err(Errno::CONNREFUSED);
        }
        ended
    }
}

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
            if own.listens() && bound_at(&own.socket) == Some(at) {
                self.endpoints.ports.add(at, Port { socket, serves });
                return Some(own);
            }
        }
        None
    }

    /// Whether a socket has a port of the sandbox's own.
    pub(super) fn has_own_port(&self, socket: &OwnedFd) -> bool {
        let cookie = sockopt::socket_cookie(socket);
        let port = bound_at(socket).and_then(|at| self.endpoints.ports.known(at));
        port.is_some_and(|port| cookie == Ok(port.socket.cookie))
    }
}

/// The loopback address and port that a socket is bound to.
fn bound_at(socket: &OwnedFd) -> Option<(IpAddr, u16)> {
    let own = getsockname(socket).and_then(SocketAddr::try_from).ok()?;
    let ip = own.ip().to_canonical();
    ip.is_loopback().then_some((ip, own.port()))
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
    let listens = || asker.state.targets.tree.proc.tcp_listens(asker.caller.call.tid, ip, port);
    ip.is_loopback()
        && grants(asker, asker.ssid, perm::tcp_socket::LOOPBACK_BIND)
        && listens() == Ok(false)
}
