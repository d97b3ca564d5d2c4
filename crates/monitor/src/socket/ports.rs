//! Ports of the machine's loopback that the run has bound itself, where it shares the network with
//! the machine: what it connects to there is a socket of its own.
//!
//! A port is known by the socket that has it. While that listens and is held, nobody else listens
//! at its address and port: `SO_REUSEPORT`, by which sockets share one, is refused to the TCP
//! sockets of such a run (`options.rs`). It listens as long as a connect to it is under way
//! (`connects.rs`), and what has not come to an end with the call is ended. A server that would
//! listen at every interface listens at the loopback alone.

use super::{connects::Connects, own::BoundSocket};
use flask::Sid;
use mediation::call::Asker;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, Result},
    net::{getsockname, sockopt},
};
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd, OwnedFd},
    sync::{Mutex, MutexGuard, PoisonError},
};
use supervisor::{
    closing::Duplicate,
    flight,
    socket::{SYN_SENT, tcp_state},
};

/// `TCP_ESTABLISHED`, `TCP_FIN_WAIT1`, `TCP_FIN_WAIT2` and `TCP_CLOSE_WAIT` of `net/tcp_states.h`:
/// it was connected.
const CONNECTED: [u8; 4] = [1, 4, 5, 8];
/// How long a connect may take whose caller does not wait: one to a listener whose queue is full
/// goes on trying, and whom it would reach then, nobody has decided.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The ports of the sandbox's own.
#[derive(Debug, Default)]
pub(crate) struct OwnPorts {
    /// By the address at which they are bound.
    bound: Mutex<HashMap<(IpAddr, u16), Port>>,
    pub(crate) connects: Connects,
}

/// A port, and who has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub(super) socket: BoundSocket,
    pub(super) serves: Serves,
}

/// The addresses of the loopback that a server is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    /// The one that it is bound to.
    One,
    /// All of IPv4: it was to be bound to `0.0.0.0`.
    V4,
    /// All: it was to be bound to `::`.
    All,
}

impl Serves {
    pub(super) fn is_for(self, ip: IpAddr) -> bool {
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
    pub(super) socket: Duplicate,
    pub(super) at: (IpAddr, u16),
}

impl OwnPorts {
    /// Ports that are remembered; beyond, all of the past are forgotten.
    const MOST: usize = 10_000;

    pub(super) fn add(&self, at: (IpAddr, u16), port: Port) {
        let mut ports = self.ports();
        if ports.len() >= Self::MOST {
            ports.clear();
        }
        ports.insert(at, port);
    }

    pub(super) fn known(&self, at: (IpAddr, u16)) -> Option<Port> {
        self.ports().get(&at).copied()
    }

    fn ports(&self) -> MutexGuard<'_, HashMap<(IpAddr, u16), Port>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnPort {
    /// Where it is bound.
    pub(super) fn ip(&self) -> IpAddr {
        self.at.0
    }

    pub(super) fn listens(&self) -> bool {
        sockopt::socket_acceptconn(&self.socket) == Ok(true)
    }

    /// Whether it listens where it did when it was found.
    pub(super) fn is_there(&self) -> bool {
        self.listens() && bound_at(&self.socket) == Some(self.at)
    }

    /// Has `connect` connect `socket` to it; nothing of that goes on afterwards.
    pub(super) fn connect(
        &self,
        (asker, connects): (Asker<'_>, &Connects),
        socket: &OwnedFd,
        connect: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let _under_way = connects.begin(&self.socket, socket)?;
        if !self.is_there() {
            return Err(Errno::CONNREFUSED);
        }
        self.reached(asker, socket, connect())
    }

    /// What is to be said of a connect to it that has `ended`, and that `socket` made: an error
    /// where it may have reached somebody else, or may reach somebody else later.
    fn reached(&self, asker: Asker<'_>, socket: &OwnedFd, ended: Result<()>) -> Result<()> {
        if ended == Err(Errno::ALREADY) {
            // The call that has begun it looks after it.
            return ended;
        }
        let is_under_way = ended == Err(Errno::INPROGRESS);
        if is_under_way {
            let mut events = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)];
            let _ = poll(&mut events, Some(&PATIENCE));
        }
        let state = tcp_state(socket.as_fd());
        let may_be_connected = ended.is_ok() || is_under_way;
        let is_connected = state.is_ok_and(|state| CONNECTED.contains(&state)) && self.is_there();
        // Also what a signal has ended: the kernel would go on sending.
        if may_be_connected && !is_connected || state == Ok(SYN_SENT) {
            let _ = flight::end_connection(&asker.state.targets.tree.proc, socket);
        }
        match ended {
            Ok(()) | Err(Errno::INPROGRESS) if !is_connected => Err(Errno::CONNREFUSED),
            // The listener is about to stop.
            Err(Errno::CONNRESET | Errno::CONNABORTED) => Err(Errno::CONNREFUSED),
            ended => ended,
        }
    }
}

/// The loopback address and port that a socket is bound to.
pub(super) fn bound_at(socket: &OwnedFd) -> Option<(IpAddr, u16)> {
    let own = getsockname(socket).and_then(SocketAddr::try_from).ok()?;
    let ip = own.ip().to_canonical();
    ip.is_loopback().then_some((ip, own.port()))
}
