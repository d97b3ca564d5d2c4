//! Options of sockets. Those that ordinary programs set run (`filter/options.rs` lists them); every
//! other one comes here, as it may lead packets elsewhere than their address says, or change what
//! the socket is.

use super::{SocketAsker, asker::allow, caller_socket::Socket};
use audit::Refusal;
use flask::Class;
use mediation::call::{Answer, CallResult};
use rustix::io::{Errno, Result};
use std::os::fd::AsFd;

/// As much as an option may hold: the kernel takes less of all that can come here.
const MOST: usize = 1 << 16;

/// Decides setsockopt, and makes the call: the descriptor could be another one's by the time that
/// the kernel looks.
pub(super) fn set(asker: SocketAsker<'_>) -> CallResult {
    let socket = Socket::of(asker, asker.caller.int(0))?;
    let (level, name) = (asker.caller.int(1), asker.caller.int(2));
    if (level, name) == (libc::SOL_SOCKET, libc::SO_ZEROCOPY) {
        return Err(asker.refuse(&zero_copy()));
    }
    // It comes here only where ports can be the run's own.
    let shares = (level, name) == (libc::SOL_SOCKET, libc::SO_REUSEPORT);
    if !shares {
        allow_one(asker, &socket, level, name)?;
    }
    if names_memory(level, name) {
        return Err(Errno::PERM);
    }
    let len = usize::try_from(asker.caller.int(4)).map_err(|_| Errno::INVAL)?;
    if len > MOST {
        return Err(Errno::INVAL);
    }
    let value = asker.caller.buffer(asker.caller.call.args[3], len)?;
    if shares && socket.class == Class::TcpSocket && value.iter().any(|byte| *byte != 0) {
        return Err(asker.refuse(&shared_port()));
    }
    supervisor::socket::set_option_bytes(socket.fd.as_fd(), level, name, &value)?;
    Ok(Answer::Return(0))
}

/// The refusal of sends without a copy, which can be those that the monitor makes.
fn zero_copy() -> Refusal {
    Refusal {
        errno: Errno::NOPROTOOPT,
        by: "the socket object manager",
        tclass: "socket",
        missing: "setopt",
        object: "SO_ZEROCOPY".to_owned(),
        reason: "what is sent on the program's behalf would refer to memory of the monitor, and show \
                 what lies there afterwards",
        instead: "let the program send with a copy; most do when they hear that there is no such option",
    }
}

/// The refusal of what lets a port of the run's own be another's, too.
fn shared_port() -> Refusal {
    Refusal {
        errno: Errno::NOPROTOOPT,
        by: "the socket object manager",
        tclass: "tcp_socket",
        missing: "setopt",
        object: "SO_REUSEPORT".to_owned(),
        reason: "a socket outside could share the port, and the kernel would choose one of both; a port of the run's own \
                 (`network.loopback = \"own\"`) is nobody else's",
        instead: "let the server do without; most do when they hear that there is no such option",
    }
}

/// Whether `asker` may set an option of `socket` that not everybody may.
pub(super) fn allow_one(
    asker: SocketAsker<'_>,
    socket: &Socket,
    level: i32,
    name: i32,
) -> Result<()> {
    let setopt = socket.class.permission("setopt").ok_or(Errno::PERM)?;
    let object = || format!("option {name} of level {level}");
    // What the kernel says where a capability is missing: programs expect it.
    allow(asker, socket.class, asker.ssid, setopt, &object).map_err(|_| Errno::PERM)
}

/// Whether the value holds addresses of memory, or descriptors: they would mean the monitor's.
fn names_memory(level: i32, name: i32) -> bool {
    const TABLES: i32 = 64;
    match level {
        libc::SOL_SOCKET => matches!(
            name,
            libc::SO_ATTACH_FILTER
                | libc::SO_ATTACH_BPF
                | libc::SO_ATTACH_REUSEPORT_CBPF
                | libc::SO_ATTACH_REUSEPORT_EBPF
        ),
        // Packet filters of the machine: `IPT_SO_SET_REPLACE` and its relatives.
        libc::IPPROTO_IP => name >= TABLES,
        libc::IPPROTO_IPV6 => (TABLES..libc::IPV6_RECVTCLASS).contains(&name),
        libc::IPPROTO_TCP | libc::IPPROTO_UDP | libc::IPPROTO_UDPLITE | libc::SOL_NETLINK => false,
        // Nobody has looked into them.
        _ => true,
    }
}
