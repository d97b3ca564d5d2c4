//! The objects that addresses name: endpoints of the network, sockets in the file system, abstract names.

use super::{
    Socket,
    address::{Address, Kind, unix_bytes},
    allow,
};
use crate::{
    file::{self, Seen},
    gate::Asker,
    label::{Status, path_from},
    process::proc_files,
    resolve::{Found, Name, walk},
    sys,
};
use flask::{
    AccessVector, Class, FileKind, InitialSid, LabelRules, NodeRule, PortRule, Protocol, Question,
    Sid, perm,
};
use rustix::{
    fs::FileType,
    io::{Errno, Result},
};
use std::{
    collections::HashMap,
    net::IpAddr,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
    sync::{Mutex, PoisonError},
};

/// Labels of addresses and ports, and of the names that the sandbox itself has bound.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    nodes: Vec<NodeRule>,
    ports: Vec<PortRule>,
    bound: Mutex<HashMap<Bound, Sid>>,
}

/// A local name that a process of the sandbox listens at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Bound {
    Abstract(Vec<u8>),
    File { device: (u32, u32), number: u64 },
}

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Connect,
    Send,
}

impl Endpoints {
    pub(crate) fn new(rules: &LabelRules) -> Self {
        Self { nodes: rules.nodes.clone(), ports: rules.ports.clone(), bound: Mutex::default() }
    }

    /// The label of an address: that of the rule with the longest mask.
    fn node(&self, ip: IpAddr) -> Sid {
        let fits = |rule: &&NodeRule| match (ip, rule.address, rule.mask) {
            (IpAddr::V4(ip), IpAddr::V4(net), IpAddr::V4(mask)) => ip & mask == net & mask,
            (IpAddr::V6(ip), IpAddr::V6(net), IpAddr::V6(mask)) => ip & mask == net & mask,
            _ => false,
        };
        let ones = |rule: &&NodeRule| match rule.mask {
            IpAddr::V4(mask) => mask.to_bits().count_ones(),
            IpAddr::V6(mask) => mask.to_bits().count_ones(),
        };
        let best = self.nodes.iter().filter(fits).max_by_key(ones);
        best.map_or(InitialSid::Node.into(), |rule| rule.sid)
    }

    /// The label of a port: that of the narrowest range.
    fn port(&self, protocol: Protocol, port: u16) -> Sid {
        let fits =
            |rule: &&PortRule| rule.protocol == protocol && (rule.low..=rule.high).contains(&port);
        let best = self.ports.iter().filter(fits).min_by_key(|rule| rule.high - rule.low);
        best.map_or(InitialSid::Port.into(), |rule| rule.sid)
    }

    fn remember(&self, name: Bound, sid: Sid) {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).insert(name, sid);
    }

    fn owner(&self, name: &Bound) -> Option<Sid> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }
}

/// An address that may be used, in the form in which the monitor uses it.
pub(super) enum Target {
    /// As the program gave it.
    Same,
    /// The socket's file, held open so that it stays the one that was decided.
    File { bytes: Vec<u8>, _held: OwnedFd },
}

impl Target {
    pub(super) fn bytes<'a>(&'a self, address: &'a Address) -> &'a [u8] {
        match self {
            Self::Same => &address.bytes,
            Self::File { bytes, .. } => bytes,
        }
    }
}

/// Decides whether `asker` may reach `address` with `socket`.
pub(super) fn reach(
    asker: Asker<'_>,
    socket: &Socket,
    address: &Address,
    usage: Use,
) -> Result<Target> {
    let object = || address.to_string();
    let peer = match socket.class {
        Class::UnixStreamSocket => perm::unix_stream_socket::CONNECTTO,
        Class::UnixDgramSocket => perm::unix_dgram_socket::SENDTO,
        _ => AccessVector::NONE,
    };
    match &address.kind {
        Kind::None => {}
        Kind::Ip(ip, port) if is_ip(socket.family) => {
            let requested = if usage == Use::Connect {
                perm::endpoint::NAME_CONNECT
            } else {
                perm::endpoint::SENDTO
            };
            let tsid = endpoint(asker, socket.class, *ip, *port)?;
            allow(asker, Class::Endpoint, tsid, requested, &object)?;
        }
        Kind::Path(path) if socket.family == libc::AF_UNIX => {
            return reach_file(asker, socket, path, peer);
        }
        Kind::Abstract(name) if socket.family == libc::AF_UNIX => {
            allow(asker, socket.class, abstract_name(asker, name), peer, &object)?;
        }
        // Netlink and the like: `connect` on the socket itself has been asked for.
        Kind::Other(family) if i32::from(*family) == socket.family && !is_ip(socket.family) => {}
        _ => return Err(Errno::AFNOSUPPORT),
    }
    Ok(Target::Same)
}

/// The label of an abstract name: its owner's, if the sandbox has bound it; else that of a rule for `@NAME`.
fn abstract_name(asker: Asker<'_>, name: &[u8]) -> Sid {
    if let Some(owner) = asker.gate.endpoints.owner(&Bound::Abstract(name.to_vec())) {
        return owner;
    }
    let rule = path_from(&[b"@", name].concat()).to_owned();
    let sid = asker.gate.labels.of_path(&rule, FileKind::Socket);
    if sid == InitialSid::File.into() { InitialSid::AnySocket.into() } else { sid }
}

fn is_ip(family: i32) -> bool {
    matches!(family, libc::AF_INET | libc::AF_INET6)
}

/// The label of an address with a port.
fn endpoint(asker: Asker<'_>, class: Class, ip: IpAddr, port: u16) -> Result<Sid> {
    let names = &asker.gate.endpoints;
    let protocol = if class == Class::UdpSocket { Protocol::Udp } else { Protocol::Tcp };
    let question = Question {
        ssid: names.node(ip),
        tsid: names.port(protocol, port),
        tclass: Class::Endpoint,
    };
    asker.gate.server.compute_create(question, None).map_err(|_| Errno::ACCESS)
}

/// A socket that the sandbox has bound carries its owner's label; any other, its file's.
fn reach_file(
    asker: Asker<'_>,
    socket: &Socket,
    path: &Path,
    requested: AccessVector,
) -> Result<Target> {
    asker.same_ids()?;
    let name = Name { dirfd: libc::AT_FDCWD, path, follow: true };
    let found = walk(asker.caller, name)?;
    proc_files::allow(asker, &found)?;
    let Some(held) = found.object else {
        file::missing_name(asker, libc::AT_FDCWD, path, perm::file::WRITE);
        return Err(Errno::NOENT);
    };
    let seen = Seen::of(asker, held.as_fd())?;
    let bound = Bound::File { device: seen.status.device, number: seen.status.number };
    let tsid = asker.gate.endpoints.owner(&bound).unwrap_or(seen.label.sid);
    allow(asker, socket.class, tsid, requested, &|| format!("unix:{}", path.display()))?;
    if seen.status.kind != FileType::Socket {
        return Err(Errno::CONNREFUSED);
    }
    // This thread's working directory is the monitor's `/proc/self/fd`.
    let bytes = unix_bytes(held.as_raw_fd().to_string().as_bytes())?;
    Ok(Target::File { bytes, _held: held })
}

/// Decides and makes a bind.
pub(super) fn bind(asker: Asker<'_>, socket: &Socket, address: &Address) -> Result<()> {
    let object = || address.to_string();
    match &address.kind {
        Kind::Ip(ip, port) if is_ip(socket.family) => {
            let tsid = endpoint(asker, socket.class, *ip, *port)?;
            allow(asker, Class::Endpoint, tsid, perm::endpoint::NAME_BIND, &object)?;
        }
        Kind::Path(path) if socket.family == libc::AF_UNIX => {
            return bind_file(asker, socket, path);
        }
        Kind::Abstract(name) if socket.family == libc::AF_UNIX => {
            sys::socket::bind(socket.fd.as_fd(), &address.bytes)?;
            asker.gate.endpoints.remember(Bound::Abstract(name.clone()), asker.ssid);
            return Ok(());
        }
        Kind::None | Kind::Other(_) if !is_ip(socket.family) => {}
        _ => return Err(Errno::AFNOSUPPORT),
    }
    sys::socket::bind(socket.fd.as_fd(), &address.bytes)
}

fn bind_file(asker: Asker<'_>, socket: &Socket, path: &Path) -> Result<()> {
    asker.same_ids()?;
    let name = Name { dirfd: libc::AT_FDCWD, path, follow: false };
    let Found { entry, object, .. } = walk(asker.caller, name)?;
    let (Some((parent, name)), None) = (entry, object) else { return Err(Errno::ADDRINUSE) };
    let sid = file::allow_new(asker, &parent, &name, FileType::Socket, perm::file::CREATE)?;
    let bytes = unix_bytes(std::os::unix::ffi::OsStrExt::as_bytes(name.as_os_str()))?;
    // Bound by its name alone, from its directory: no component of the path is walked again.
    rustix::process::fchdir(&parent)?;
    let bound = file::with_umask(asker, || sys::socket::bind(socket.fd.as_fd(), &bytes));
    rustix::process::fchdir(&asker.gate.view.own_fds)?;
    bound?;
    let flags =
        rustix::fs::OFlags::PATH | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
    let made = rustix::fs::openat(&parent, &name, flags, rustix::fs::Mode::empty())?;
    let status = Status::of(made.as_fd())?;
    asker.gate.labels.created(&status, sid);
    let bound = Bound::File { device: status.device, number: status.number };
    asker.gate.endpoints.remember(bound, asker.ssid);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sid(number: u32) -> Sid {
        Sid::new(number).unwrap()
    }

    #[test]
    fn the_longest_mask_and_the_narrowest_range_win() {
        let node = |address: &str, mask: &str, number| NodeRule {
            address: address.parse().unwrap(),
            mask: mask.parse().unwrap(),
            sid: sid(number),
        };
        let port =
            |low, high, number| PortRule { protocol: Protocol::Tcp, low, high, sid: sid(number) };
        let names = Endpoints::new(&LabelRules {
            files: Vec::new(),
            ports: vec![port(0, 65535, 201), port(443, 443, 202), port(1, 1023, 203)],
            nodes: vec![node("0.0.0.0", "0.0.0.0", 101), node("10.0.0.0", "255.0.0.0", 102)],
        });
        for (port, want) in [(443, 202), (80, 203), (8080, 201), (0, 201)] {
            assert_eq!(names.port(Protocol::Tcp, port), sid(want), "{port}");
        }
        assert_eq!(names.port(Protocol::Udp, 443), InitialSid::Port.into());
        for (ip, want) in
            [("10.1.2.3", sid(102)), ("1.1.1.1", sid(101)), ("::1", InitialSid::Node.into())]
        {
            assert_eq!(names.node(ip.parse().unwrap()), want, "{ip}");
        }
    }
}
