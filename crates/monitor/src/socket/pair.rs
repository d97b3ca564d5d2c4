//! Pairs of sockets.

use super::{SocketAsker, asker::allow, create};
use avc::Hint;
use flask::{Class, Question, perm};
use mediation::call::{Answer, CallResult};
use rustix::{
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
};
use std::os::fd::AsFd;

/// Decides a pair. An end of a pair of datagrams could send to any other name as well. Where policy
/// does not grant that, and so no send is looked at, the program gets a pair of packets: it keeps
/// the borders of messages, and reaches its peer only. They differ once an end is closed: the other
/// then reads an end, and its sends fail with `EPIPE`.
pub(super) fn create(asker: SocketAsker<'_>, class: Class) -> CallResult {
    let question = Question { ssid: asker.ssid, tsid: asker.ssid, tclass: class };
    let datagrams = class == Class::UnixDgramSocket;
    if !datagrams
        || asker.state.caches.socket.grants(question, perm::socket::CREATE, &Hint::default())
    {
        return create::create(asker, class);
    }
    let packets = Class::UnixStreamSocket;
    let object = || "a pair of packets, in the place of datagrams".to_owned();
    allow(asker, packets, asker.ssid, perm::socket::CREATE, &object)?;
    if asker.caller.int(2) != 0 && asker.caller.int(2) != libc::AF_UNIX {
        return Err(Errno::PROTONOSUPPORT);
    }
    // Nobody could take back the one end if its table did not take the other.
    asker.caller.has_room_for(2)?;
    let (kind, numbers) = (asker.caller.int(1), asker.caller.call.args[3]);
    let mut flags = SocketFlags::CLOEXEC;
    flags.set(SocketFlags::NONBLOCK, kind & libc::SOCK_NONBLOCK != 0);
    let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    // Whether the numbers can be told is found out before there are any.
    let before = asker.caller.bytes::<8>(numbers)?;
    asker.caller.put(numbers, &before)?;
    let cloexec = kind & libc::SOCK_CLOEXEC != 0;
    let give = |end: &std::os::fd::OwnedFd| {
        asker.state.targets.listener.give_fd(asker.caller.call.id, end.as_fd(), cloexec)
    };
    let given = [give(&one)?.to_ne_bytes(), give(&other)?.to_ne_bytes()].concat();
    asker.caller.put(numbers, &given)?;
    Ok(Answer::Return(0))
}
