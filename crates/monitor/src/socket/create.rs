//! New sockets.

use super::{SocketAsker, asker::allow, class_of};
use audit::Refusal;
use flask::{Class, perm};
use mediation::call::{Answer, CallResult};
use rustix::io::Errno;

pub(super) fn new_socket(asker: SocketAsker<'_>) -> CallResult {
    let [family, kind, protocol] = [0, 1, 2].map(|n| asker.caller.int(n));
    let answer = create(asker, class_of(family, kind, protocol))?;
    let Some(kept) = &asker.sockets.kept else { return Ok(answer) };
    let made = kept.make(*asker)?;
    Ok(made.map_or(answer, |fd| Answer::Open { fd, cloexec: kind & libc::SOCK_CLOEXEC != 0 }))
}

pub(super) fn create(asker: SocketAsker<'_>, class: Class) -> CallResult {
    let sends = matches!(class, Class::UdpSocket | Class::RawipSocket);
    if sends && asker.is_inside() && !asker.state.inside.datagrams_are_decided() {
        return Err(asker.refuse(&undecided_inside(class)));
    }
    let is_mptcp = class == Class::Socket && asker.caller.int(2) == libc::IPPROTO_MPTCP;
    let of = if is_mptcp { " of MPTCP" } else { "" };
    allow(asker, class, asker.ssid, perm::socket::CREATE, &|| format!("a new {class}{of}"))?;
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
