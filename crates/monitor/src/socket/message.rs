//! sendto, sendmsg, sendmmsg: trapped only where a socket can send to any address without
//! connecting first.

use super::{
    SocketAsker,
    asker::address_at,
    caller_socket::Socket,
    control::{Control, has_credentials},
    names::{self, take_port},
    sender::{allow_packet, is_of_packets, sends_itself},
};
use flask::Class;
use mediation::call::{Answer, CallResult};
use rustix::{
    fs::OFlags,
    io::{Errno, Result},
    net::{SocketType, sockopt::socket_type},
};
use std::os::fd::AsFd;
use supervisor::address::Address;

/// As much as one call sends on a program's behalf; a stream's sender goes on with the rest.
const MOST_DATA: usize = 1 << 20;
/// `UIO_MAXIOV` of `linux/uio.h`, which bounds messages, too.
const MOST_PIECES: u64 = 1024;
/// Control messages are small; `optmem_max` bounds them in the kernel, too.
const MOST_CONTROL: u64 = 4096;

/// `struct msghdr`, copied.
struct Header {
    name: u64,
    name_len: i32,
    pieces: u64,
    piece_count: u64,
    control: u64,
    control_len: u64,
}

/// Size of `struct msghdr`, and where `struct mmsghdr` keeps the length sent.
const HEADER: usize = 56;
/// Size of `struct mmsghdr`.
const MESSAGE: u64 = 64;

pub(super) fn sendto(asker: SocketAsker<'_>) -> CallResult {
    let args = &asker.caller.call.args;
    let socket = Socket::of(asker, asker.caller.int(0))?;
    if is_of_packets(&socket)? && sends_itself(asker)? {
        return Ok(Answer::Continue);
    }
    let len = usize::try_from(args[2]).unwrap_or(usize::MAX);
    let data = asker.caller.buffer(args[1], fitting(&socket, len)?)?;
    let address = address_at(asker, args[4], asker.caller.int(5))?;
    let sent = send((asker, &socket), &data, Some(&address), &[], asker.caller.int(3))?;
    Ok(Answer::Return(sent as i64))
}

pub(super) fn sendmsg(asker: SocketAsker<'_>) -> CallResult {
    let sent = one(asker, asker.caller.call.args[1], asker.caller.int(2))?;
    Ok(sent.map_or(Answer::Continue, |sent| Answer::Return(sent as i64)))
}

/// Sends messages until one cannot be sent; if it is not the first, the caller is told how many
/// were.
pub(super) fn sendmmsg(asker: SocketAsker<'_>) -> CallResult {
    let [_, table, count, ..] = asker.caller.call.args;
    let count = u64::from(count as u32).min(MOST_PIECES);
    if count == 0 {
        Socket::of(asker, asker.caller.int(0))?;
    }
    for n in 0..count {
        let at = table.wrapping_add(n * MESSAGE);
        let sent = one(asker, at, asker.caller.int(3)).and_then(|sent| {
            let tell = |sent| asker.caller.put(at + HEADER as u64, &(sent as u32).to_ne_bytes());
            sent.map(tell).transpose()
        });
        match sent {
            Err(error) if n == 0 => return Err(error),
            Ok(None) if n == 0 => return Ok(Answer::Continue),
            Err(_) | Ok(None) => return Ok(Answer::Return(n as i64)),
            Ok(Some(())) => {}
        }
    }
    Ok(Answer::Return(count as i64))
}

/// How much of a message was sent; `None` if the program sends it itself.
fn one(asker: SocketAsker<'_>, at: u64, flags: i32) -> Result<Option<usize>> {
    let header = header(&asker.caller.bytes::<HEADER>(at)?);
    let socket = Socket::of(asker, asker.caller.int(0))?;
    if is_of_packets(&socket)? && sends_itself(asker)? {
        return Ok(None);
    }
    let data = gather(asker, &socket, &header)?;
    if header.control_len > MOST_CONTROL {
        return Err(Errno::NOBUFS);
    }
    let control = asker.caller.buffer(header.control, header.control_len as usize)?;
    if has_credentials(&control) && sends_itself(asker)? {
        return Ok(None);
    }
    let address = match (header.name, header.name_len) {
        (0, _) | (_, 0) => None,
        (name, len) => Some(address_at(asker, name, len)?),
    };
    send((asker, &socket), &data, address.as_ref(), &control, flags).map(Some)
}

/// How much of `len` bytes is sent: of a stream, as much as one call sends; of all others, all or
/// nothing.
fn fitting(socket: &Socket, len: usize) -> Result<usize> {
    if len > MOST_DATA && socket_type(&socket.fd)? != SocketType::STREAM {
        return Err(Errno::MSGSIZE);
    }
    Ok(len.min(MOST_DATA))
}

fn header(raw: &[u8; HEADER]) -> Header {
    let word = |at: usize| u64::from_ne_bytes(raw[at..at + 8].try_into().unwrap_or_default());
    Header {
        name: word(0),
        name_len: word(8) as i32,
        pieces: word(16),
        piece_count: word(24),
        control: word(32),
        control_len: word(40),
    }
}

fn gather(asker: SocketAsker<'_>, socket: &Socket, header: &Header) -> Result<Vec<u8>> {
    if header.piece_count > MOST_PIECES {
        return Err(Errno::MSGSIZE);
    }
    let table = asker.caller.buffer(header.pieces, header.piece_count as usize * 16)?;
    let word = |half: &[u8]| u64::from_ne_bytes(half.try_into().unwrap_or_default());
    let pieces = || table.chunks_exact(16);
    let all = pieces().fold(0_u64, |sum, piece| sum.saturating_add(word(&piece[8..])));
    fitting(socket, usize::try_from(all).unwrap_or(usize::MAX))?;
    let mut data = Vec::new();
    for piece in pieces() {
        let room = (MOST_DATA - data.len()) as u64;
        let len = word(&piece[8..]).min(room) as usize;
        data.extend(asker.caller.buffer(word(&piece[..8]), len)?);
    }
    Ok(data)
}

fn send(
    (asker, socket): (SocketAsker<'_>, &Socket),
    data: &[u8],
    address: Option<&Address>,
    control: &[u8],
    flags: i32,
) -> Result<usize> {
    // Packets would refer to memory of the monitor after the call, and show what lies there then.
    let flags = flags & !libc::MSG_ZEROCOPY;
    let kind = socket_type(&socket.fd)?;
    let is_unix = socket.family == libc::AF_UNIX;
    let has_peer = || rustix::net::getpeername(&socket.fd).is_ok();
    if is_unix && kind == SocketType::STREAM && address.is_some() {
        // A stream has one peer: the kernel heeds no address.
        return Err(if has_peer() { Errno::ISCONN } else { Errno::OPNOTSUPP });
    }
    let is_packet = is_unix && kind == SocketType::SEQPACKET;
    if is_packet {
        allow_packet(asker, socket)?;
    }
    // TCP heeds no address but with `MSG_FASTOPEN`, which the filter refuses; nor do packets.
    let address = address.filter(|_| socket.class != Class::TcpSocket && !is_packet);
    // Held until the message is sent: descriptors of the program's that go with it.
    let control = Control::of(asker, socket, control)?;
    let reach = |address| {
        names::reach(asker, socket, address, names::Use::Send)
            .inspect_err(|_| take_port(asker, socket, address))
    };
    let target = address.map(reach).transpose()?;
    let to = target.as_ref().zip(address).map_or(&[][..], |(target, to)| target.bytes(to));
    let send = |flags| supervisor::socket::send(socket.fd.as_fd(), data, to, &control.bytes, flags);
    let sent = match send(flags | libc::MSG_DONTWAIT) {
        // A change of policy ends the wait before it is complete, so what was sent meanwhile was
        // sent before.
        Err(Errno::AGAIN) if flags & libc::MSG_DONTWAIT == 0 && !is_nonblocking(socket)? => {
            asker.wait(|| send(flags)).map(|(sent, _)| sent)
        }
        sent => sent,
    };
    let is_told = kind == SocketType::STREAM && flags & libc::MSG_NOSIGNAL == 0;
    if sent == Err(Errno::PIPE) && is_told {
        asker.caller.signal(libc::SIGPIPE);
    }
    sent
}

fn is_nonblocking(socket: &Socket) -> Result<bool> {
    Ok(rustix::fs::fcntl_getfl(&socket.fd)?.contains(OFlags::NONBLOCK))
}
