//! Sockets that a process holds, and what is on its way through them.

use super::{
    flight,
    held::{Comparison, Finding, Subject, USES, place},
    receipt::Held,
};
use crate::{
    caller::{path_of, read_text},
    file::class_of,
    label::Status,
    socket::{class_of as socket_class, endpoint_label, unix_label},
    sys::socket::option,
};
use flask::{AccessVector, Class, InitialSid, perm};
use rustix::{
    fs::FileType,
    io::{Errno, Result},
    net::{SocketAddrAny, SocketAddrUnix, getpeername, getsockname},
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};
use std::{
    net::SocketAddr,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};

impl Comparison<'_> {
    pub(super) fn socket(&self, who: Subject, fd: i32) -> Vec<Finding> {
        self.look_at_socket(who, fd).unwrap_or_else(|error| {
            let why = format!("a socket that cannot be looked at: {error}");
            vec![Finding::vague(Held::Connection(fd), why)]
        })
    }

    fn look_at_socket(&self, who: Subject, fd: i32) -> Result<Vec<Finding>> {
        let pid = Pid::from_raw(who.pid as i32).ok_or(Errno::SRCH)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        let socket = pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty())?;
        let number = |name| option(socket.as_fd(), name);
        let family = number(libc::SO_DOMAIN)?;
        let class = socket_class(family, number(libc::SO_TYPE)?, number(libc::SO_PROTOCOL)?);
        let mut findings = Vec::new();
        let found = match family {
            libc::AF_INET | libc::AF_INET6 => self.internet(who, fd, class, &socket),
            libc::AF_UNIX => {
                findings.extend(self.in_flight(who, fd, &socket));
                self.unix(who, fd, class, &socket)
            }
            _ => {
                let own = who.ssid.unwrap_or(InitialSid::Init.into());
                let lost = self.lost(who.ssid, (own, own), class) & perm::socket::CREATE;
                let object = format!("a {class}");
                (!lost.is_empty()).then(|| Finding::new(Held::Connection(fd), object, class, lost))
            }
        };
        findings.extend(found.map(|found| Finding { socket: Some(socket), ..found }));
        Ok(findings)
    }

    fn internet(&self, who: Subject, fd: i32, class: Class, socket: &OwnedFd) -> Option<Finding> {
        let ip = |address: SocketAddrAny| SocketAddr::try_from(address).ok();
        let own = getsockname(socket).ok().and_then(ip);
        let peer = getpeername(socket).ok().flatten().and_then(ip);
        let uses = perm::endpoint::NAME_CONNECT | perm::endpoint::SENDTO;
        if let Some(peer) = peer
            && let Some(lost) = self.lost_endpoint(who, class, peer, uses)
        {
            return Some(Finding::new(
                Held::Connection(fd),
                peer.to_string(),
                Class::Endpoint,
                lost,
            ));
        }
        let lost = self.lost_endpoint(who, class, own?, perm::endpoint::NAME_BIND)?;
        let held = if peer.is_some() { Held::Connection(fd) } else { Held::Listener(fd) };
        Some(Finding::new(held, own?.to_string(), Class::Endpoint, lost))
    }

    /// What was taken back at an address that had been decided; `None` for nothing.
    fn lost_endpoint(
        &self,
        who: Subject,
        class: Class,
        address: SocketAddr,
        uses: AccessVector,
    ) -> Option<AccessVector> {
        let before = self.gate.endpoints.decided(class, address)?;
        let ip = address.ip().to_canonical();
        let now = endpoint_label(self.gate, class, ip, address.port()).ok()?;
        let lost = self.lost(who.ssid, (before, now), Class::Endpoint) & uses;
        (!lost.is_empty()).then_some(lost)
    }

    fn unix(&self, who: Subject, fd: i32, class: Class, socket: &OwnedFd) -> Option<Finding> {
        let peer = SocketAddrUnix::try_from(getpeername(socket).ok()??).ok()?;
        let lost = self.lost(who.ssid, unix_label(self.gate, &peer)?, class);
        // The bit of `connectto` is that of `sendto`: the one permission that is asked for on the name of a peer.
        let lost = lost & perm::unix_stream_socket::CONNECTTO;
        let name = peer.path_bytes().or(peer.abstract_name()).unwrap_or_default();
        let object = format!("unix:{}", String::from_utf8_lossy(name).trim_end_matches('\0'));
        (!lost.is_empty()).then(|| Finding::new(Held::Connection(fd), object, class, lost))
    }

    /// Descriptors that somebody has sent and nobody has received: only the socket as a whole can be emptied.
    fn in_flight(&self, who: Subject, fd: i32, socket: &OwnedFd) -> Option<Finding> {
        let info = self.info(who, fd).ok()?;
        let count = info.text.lines().find_map(|line| line.strip_prefix("scm_fds:"))?;
        if count.trim() == "0" {
            return None;
        }
        let peeked = flight::peek(socket.as_fd());
        let complete = peeked.complete && count.trim().parse() == Ok(peeked.descriptors.len());
        let lost = |fd: &OwnedFd| self.is_lost(who, fd);
        if complete && !peeked.descriptors.iter().any(lost) {
            return None;
        }
        let object = format!("{} descriptors in flight", count.trim());
        let socket = socket.try_clone().ok();
        let finding = Finding::vague(Held::InFlight(fd), object);
        Some(Finding { socket, ..finding })
    }

    /// Whether a descriptor of the monitor's own is one that `who` would lose. What it is opened for is not looked at.
    fn is_lost(&self, who: Subject, fd: &OwnedFd) -> bool {
        let Ok(status) = Status::of(fd.as_fd()) else { return true };
        if status.kind == FileType::Socket {
            return self.is_socket_lost(who, fd).unwrap_or(true);
        }
        let path = || path_of(&self.gate.view, fd);
        let Some(path) = path().ok().and_then(|path| place(path.as_os_str().as_bytes())) else {
            return false;
        };
        let Ok(label) = self.gate.labels.of_file(&status, || Ok(path)) else { return true };
        !(self.lost_file(who.ssid, &label, class_of(status.kind)) & USES).is_empty()
    }

    /// The same of a socket, which can hold others in turn.
    fn is_socket_lost(&self, who: Subject, socket: &OwnedFd) -> Result<bool> {
        let number = |name| option(socket.as_fd(), name);
        let family = number(libc::SO_DOMAIN)?;
        let class = socket_class(family, number(libc::SO_TYPE)?, number(libc::SO_PROTOCOL)?);
        let own = format!("self/fdinfo/{}", socket.as_raw_fd());
        let info = read_text(&self.gate.view, &own)?;
        let holds = info.lines().any(|line| line.starts_with("scm_fds:") && !line.ends_with("\t0"));
        Ok(holds
            || match family {
                libc::AF_INET | libc::AF_INET6 => self.internet(who, -1, class, socket).is_some(),
                libc::AF_UNIX => self.unix(who, -1, class, socket).is_some(),
                _ => false,
            })
    }
}
