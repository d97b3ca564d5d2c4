//! Sockets that a process holds, and what is on its way through them.

use super::{
    held::{Comparison, Finding, Subject, USES},
    receipt::Held,
};
use crate::socket::class_of as socket_class;
use file_manager::class_of;
use flask::{AccessVector, Class, perm};
use inode_labels::{FileRef, Status};
use proc::{named, path_of};
use rustix::{
    fs::FileType,
    io::{Errno, Result},
    net::{SocketAddrUnix, getpeername, getsockname},
};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};
use supervisor::{
    flight,
    socket::{SYN_SENT, option, tcp_state, unsent},
    thread::take_descriptor,
};

/// How often a connecting stream is looked for in the kernel's table.
const LOOKS: u32 = 4;

/// A socket that somebody holds.
#[derive(Clone, Copy)]
struct HeldSocket<'a> {
    who: Subject,
    fd: i32,
    class: Class,
    socket: &'a OwnedFd,
}

impl<'a> HeldSocket<'a> {
    /// With its family.
    fn of(who: Subject, fd: i32, socket: &'a OwnedFd) -> Result<(i32, Self)> {
        let number = |name| option(socket.as_fd(), name);
        let family = number(libc::SO_DOMAIN)?;
        let class = socket_class(family, number(libc::SO_TYPE)?, number(libc::SO_PROTOCOL)?);
        Ok((family, Self { who, fd, class, socket }))
    }
}

impl Comparison<'_> {
    pub(super) fn socket(&self, who: Subject, fd: i32, inode: u64) -> Result<Vec<Finding>> {
        let socket = match take_descriptor(who.tid, who.pid, fd) {
            Ok(socket) => socket,
            // A filter refuses it. It may be connected to anybody.
            Err(error @ (Errno::PERM | Errno::ACCESS | Errno::NOSYS)) => {
                let object = format!("a socket that cannot be looked at: {error}");
                let finding = Finding::vague(Held::Connection(fd), object);
                return Ok(vec![Finding { by_call: true, ..finding }]);
            }
            Err(error) => return Err(error),
        };
        let stat = rustix::fs::fstat(&socket)?;
        if stat.st_ino != inode {
            // Of a table that only this thread uses, which an old kernel does not let others at.
            return Err(Errno::OPNOTSUPP);
        }
        let (family, it) = HeldSocket::of(who, fd, &socket)?;
        let class = it.class;
        let mut findings = Vec::new();
        let found = match family {
            libc::AF_INET | libc::AF_INET6 => self.internet(it)?,
            libc::AF_UNIX => {
                findings.extend(self.in_flight(who, fd, &socket)?);
                self.unix(it)?
            }
            _ => None,
        };
        let found = match found {
            Some(found) => Some(found),
            None => self.class_lost(it)?,
        };
        // A datagram socket that is shut down still receives, and still sends to the peer that it
        // had what it began before; one of netlink is not shut down at all.
        let by_call = family != libc::AF_UNIX && class != Class::TcpSocket;
        findings.extend(found.map(|found| Finding { socket: Some(socket), by_call, ..found }));
        Ok(findings)
    }

    /// What was taken back of sockets of the class, whatever their addresses: owning one,
    /// listening, and being connected.
    fn class_lost(&self, it: HeldSocket<'_>) -> Result<Option<Finding>> {
        let HeldSocket { who, fd, class, socket } = it;
        let lost = self.lost_own(who.ssid, class);
        if let Some(found) = own_ports_lost(fd, class, lost, socket) {
            return Ok(Some(found));
        }
        let (create, listen, connect) =
            (perm::socket::CREATE, perm::socket::LISTEN, perm::socket::CONNECT);
        if (lost & (create | listen | connect)).is_empty() {
            return Ok(None);
        }
        let found = |held, what: AccessVector| {
            Some(Finding::new(held, format!("a {class}"), class, lost & what))
        };
        Ok(if option(socket.as_fd(), libc::SO_ACCEPTCONN)? != 0 {
            let lost = lost & (create | listen);
            if lost.is_empty() { None } else { found(Held::Listener(fd), create | listen) }
        } else if !(lost & create).is_empty() {
            found(Held::Connection(fd), create)
        } else if !(lost & connect).is_empty() && matches!(getpeername(socket), Ok(Some(_))) {
            found(Held::Connection(fd), connect)
        } else {
            None
        })
    }

    fn internet(&self, it: HeldSocket<'_>) -> Result<Option<Finding>> {
        let HeldSocket { who, fd, class, socket } = it;
        let own = SocketAddr::try_from(getsockname(socket)?)?;
        let peer = match getpeername(socket) {
            Ok(peer) => peer.map(SocketAddr::try_from).transpose()?,
            Err(Errno::NOTCONN) => self.connecting_to(who, class, socket)?,
            Err(error) => return Err(error),
        };
        if class == Class::UdpSocket && self.may_send_on(who, socket)? {
            return Ok(Some(Finding::vague(Held::Connection(fd), "a datagram begun")));
        }
        let found = |held: Held, address: SocketAddr, lost: AccessVector| {
            let object = address.to_string();
            (!lost.is_empty()).then(|| Finding::new(held, object, Class::Endpoint, lost))
        };
        if let Some(peer) = peer {
            let uses = perm::endpoint::NAME_CONNECT | perm::endpoint::SENDTO;
            let lost = self.lost_endpoint(who, class, &[peer.ip()], peer.port()) & uses;
            if let Some(found) = found(Held::Connection(fd), peer, lost) {
                return Ok(Some(found));
            }
        }
        // What was accepted has the address that its peer asked for, and the kernel may have chosen
        // the port.
        let ips = [own.ip(), Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        let lost = self.lost_endpoint(who, class, &ips, own.port())
            | self.lost_decided(who, class, &ips, 0).unwrap_or(AccessVector::NONE);
        let held = if peer.is_some() { Held::Connection(fd) } else { Held::Listener(fd) };
        Ok(found(held, own, lost & perm::endpoint::NAME_BIND))
    }

    /// Whether a socket may hold the beginning of a datagram (`MSG_MORE` of send(2)) to an address
    /// that was taken back: which one, it does not tell, and it need not be that of its peer.
    fn may_send_on(&self, who: Subject, socket: &OwnedFd) -> Result<bool> {
        if unsent(socket.as_fd())? == 0 {
            return Ok(false);
        }
        let is_lost = |(class, ip, _): (Class, IpAddr, u16), port: u16| {
            let lost = self.lost_endpoint(who, class, &[ip], port) & perm::endpoint::SENDTO;
            class == Class::UdpSocket && !lost.is_empty()
        };
        let remembered = self.gate.sockets.endpoints.remembered();
        Ok(remembered.into_iter().any(|(key, _)| is_lost(key, key.2)))
    }

    /// The peer of a stream that is on its way to it.
    fn connecting_to(
        &self,
        who: Subject,
        class: Class,
        socket: &OwnedFd,
    ) -> Result<Option<SocketAddr>> {
        if class != Class::TcpSocket || tcp_state(socket.as_fd())? != SYN_SENT {
            return Ok(None);
        }
        // A table that changes while it is read can leave a line out.
        let inode = rustix::fs::fstat(socket)?.st_ino;
        let look = || self.gate.state.targets.tree.proc.tcp_peer(who.tid, inode);
        let found = (0..LOOKS).find_map(|_| look().transpose());
        found.unwrap_or(Err(Errno::AGAIN)).map(Some)
    }

    /// What was taken back at any of the addresses. If it is forgotten whether they were decided,
    /// what all of them deny.
    fn lost_endpoint(&self, who: Subject, class: Class, ips: &[IpAddr], port: u16) -> AccessVector {
        let denied_at = |ip: &IpAddr| {
            let now =
                self.gate.sockets.endpoints.label(&self.gate.state, class, ip.to_canonical(), port);
            let denied = |now| self.denied(who.ssid, now, Class::Endpoint);
            now.map_or(AccessVector::ALL, denied)
        };
        match self.lost_decided(who, class, ips, port) {
            Some(lost) => lost,
            None if self.gate.sockets.endpoints.has_forgotten() => {
                ips.iter().map(denied_at).fold(AccessVector::ALL, |all, denied| all & denied)
            }
            None => AccessVector::NONE,
        }
    }

    /// What was taken back at those of the addresses that were decided; `None` if none was.
    fn lost_decided(
        &self,
        who: Subject,
        class: Class,
        ips: &[IpAddr],
        port: u16,
    ) -> Option<AccessVector> {
        let lost_at = |ip: &IpAddr| {
            let before =
                self.gate.sockets.endpoints.label_before(class, ip.to_canonical(), port)?;
            let now =
                self.gate.sockets.endpoints.label(&self.gate.state, class, ip.to_canonical(), port);
            let lost = |now| self.lost(who.ssid, (before, now), Class::Endpoint);
            Some(now.map_or(AccessVector::ALL, lost))
        };
        ips.iter().filter_map(lost_at).reduce(|all, lost| all | lost)
    }

    fn unix(&self, it: HeldSocket<'_>) -> Result<Option<Finding>> {
        let HeldSocket { who, fd, class, socket } = it;
        let peer = match getpeername(socket) {
            Ok(Some(peer)) => SocketAddrUnix::try_from(peer)?,
            Ok(None) | Err(Errno::NOTCONN) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Ok(labels) = self.gate.sockets.unix_labels(&self.gate.state, socket, &peer) else {
            // What was accepted, or is one of a pair, has a peer without a name.
            let has_name = peer.path_bytes().or(peer.abstract_name()).is_some();
            let object = "a connection to whom is forgotten";
            return Ok(has_name.then(|| Finding::vague(Held::Connection(fd), object)));
        };
        let lost = labels.into_iter().map(|labels| self.lost(who.ssid, labels, class));
        let lost = lost.fold(AccessVector::NONE, |all, lost| all | lost);
        // The bit of `connectto` is that of `sendto`: the one permission that is asked for on the
        // name of a peer.
        let lost = lost & perm::unix_stream_socket::CONNECTTO;
        let name = peer.path_bytes().or(peer.abstract_name()).unwrap_or_default();
        let object = format!("unix:{}", String::from_utf8_lossy(name).trim_end_matches('\0'));
        Ok((!lost.is_empty()).then(|| Finding::new(Held::Connection(fd), object, class, lost)))
    }

    /// Descriptors that somebody has sent and nobody has received: only the socket as a whole can
    /// be emptied.
    fn in_flight(&self, who: Subject, fd: i32, socket: &OwnedFd) -> Result<Option<Finding>> {
        let count = self.info(who, fd)?.in_flight();
        if count == Some(0) {
            return Ok(None);
        }
        let peeked = flight::peek(socket.as_fd());
        let seen = peeked.descriptors.len();
        let complete = peeked.complete && count == Some(seen);
        let lost = |fd: &OwnedFd| self.is_lost(who, fd);
        if complete && !peeked.descriptors.iter().any(lost) {
            return Ok(None);
        }
        let object = format!("{} descriptors in flight", count.unwrap_or(seen));
        let finding = Finding::vague(Held::InFlight(fd), object);
        let socket = socket.try_clone().map_err(|_| Errno::MFILE)?.into();
        Ok(Some(Finding { socket: Some(socket), ..finding }))
    }

    /// Whether a descriptor of the monitor's own is one that `who` would lose. What it is opened
    /// for is not looked at.
    fn is_lost(&self, who: Subject, fd: &OwnedFd) -> bool {
        let Ok(status) = Status::of(fd.as_fd()) else { return true };
        if status.kind == FileType::Socket {
            return self.is_socket_lost(who, fd).unwrap_or(true);
        }
        if status.kind == FileType::Unknown {
            let proc = &self.gate.state.targets.tree.proc;
            let info = proc.descriptor("self", fd.as_raw_fd());
            let watches = info.map_or(true, |info| info.watches().next().is_some());
            let link = proc.descriptor_link("self", fd.as_raw_fd());
            return watches || link.map_or(true, |link| self.is_made_by_lost(who.ssid, &link));
        }
        let Ok(path) = path_of(&self.gate.state.targets.tree, fd) else { return true };
        // What never had a name is no object of policy.
        let path = named(path.as_os_str().as_bytes(), |path| status.lies_at(path));
        let Some(path) = path else { return false };
        let file = FileRef::Open(fd.as_fd(), self.gate.state.targets.tree.own_fds.as_fd());
        let label = self.gate.state.labels.of_file(&status, file, || Ok(path.clone()));
        let Ok(label) = label else { return true };
        let lost = self.lost_file(who.ssid, &label, class_of(status.kind))
            | self.denied_by_name(who.ssid, status.kind, || Ok(path));
        !(lost & USES).is_empty()
    }

    /// The same of a socket, which can hold others in turn.
    fn is_socket_lost(&self, who: Subject, socket: &OwnedFd) -> Result<bool> {
        let (family, it) = HeldSocket::of(who, -1, socket)?;
        let own = || self.gate.state.targets.tree.proc.descriptor("self", socket.as_raw_fd());
        let holds = || own().map(|info| info.in_flight() != Some(0));
        match family {
            libc::AF_INET | libc::AF_INET6 => self.internet(it).map(|found| found.is_some()),
            libc::AF_UNIX => Ok(holds()? || self.unix(it)?.is_some()),
            _ => Ok(self.class_lost(it)?.is_some()),
        }
    }
}

/// What was taken back of a socket's that has a port of the run's own, or may be connected to one.
fn own_ports_lost(fd: i32, class: Class, lost: AccessVector, socket: &OwnedFd) -> Option<Finding> {
    if class != Class::TcpSocket {
        return None;
    }
    let on_loopback = |address: Result<SocketAddr>| {
        address.is_ok_and(|address| address.ip().to_canonical().is_loopback())
    };
    let peer =
        getpeername(socket).and_then(|peer| SocketAddr::try_from(peer.ok_or(Errno::NOTCONN)?));
    let (held, requested) = match on_loopback(peer) {
        true => (Held::Connection(fd), perm::tcp_socket::CONNECTTO),
        false if on_loopback(getsockname(socket).and_then(SocketAddr::try_from)) => {
            (Held::Listener(fd), perm::tcp_socket::LOOPBACK_BIND)
        }
        false => return None,
    };
    let lost = lost & requested;
    (!lost.is_empty()).then(|| Finding::new(held, "a port of its own".to_owned(), class, lost))
}
