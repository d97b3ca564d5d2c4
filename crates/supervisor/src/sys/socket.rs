//! Socket calls on a duplicate of the program's socket, with an address as bytes.
#![allow(unsafe_code)]

use rustix::io::{Errno, Result};
use std::os::fd::{AsRawFd, BorrowedFd};

/// The largest address that the kernel takes (`struct sockaddr_storage`).
pub const ADDRESS_MAX: usize = 128;

/// connect(2) to the address in `bytes`, which the kernel parses.
pub fn connect(socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<()> {
    // SAFETY: pointer and length are those of `bytes`, which the call only reads.
    check(unsafe {
        libc::connect(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len() as libc::socklen_t)
    })
    .map(drop)
}

/// Takes the peer from a socket; of TCP, by a reset: a waiting call ends with `ECONNRESET`, a
/// listener listens no more. What a datagram socket was shut down for stays so.
pub fn disconnect(socket: BorrowedFd<'_>) -> Result<()> {
    let mut address = [0_u8; 16];
    address[..2].copy_from_slice(&(libc::AF_UNSPEC as u16).to_ne_bytes());
    connect(socket, &address)
}

/// bind(2) to the address in `bytes`, which the kernel parses.
pub fn bind(socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<()> {
    // SAFETY: pointer and length are those of `bytes`, which the call only reads.
    check(unsafe {
        libc::bind(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len() as libc::socklen_t)
    })
    .map(drop)
}

/// sendmsg(2) of one piece of data, to `address` unless that is empty, with `control` messages as
/// bytes.
pub fn send(
    socket: BorrowedFd<'_>,
    data: &[u8],
    address: &[u8],
    control: &[u8],
    flags: i32,
) -> Result<usize> {
    let mut piece = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    // SAFETY: `msghdr` is integers and pointers, for which all zeroes is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    if !address.is_empty() {
        message.msg_name = address.as_ptr().cast_mut().cast();
        message.msg_namelen = address.len() as libc::socklen_t;
    }
    if !control.is_empty() {
        message.msg_control = control.as_ptr().cast_mut().cast();
        message.msg_controllen = control.len();
    }
    // SAFETY: every pointer in `message` is null or spans the borrowed slice that it was made from,
    // with its length; sendmsg only reads them.
    let sent = unsafe {
        libc::sendmsg(socket.as_raw_fd(), &raw const message, flags | libc::MSG_NOSIGNAL)
    };
    check(sent as libc::c_int).map(|sent| sent as usize)
}

/// Bytes that a socket has taken and not sent (`SIOCOUTQ`).
pub fn unsent(socket: BorrowedFd<'_>) -> Result<i32> {
    let mut count: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which has the number of TIOCOUTQ, writes one integer, which `count` is.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) })?;
    Ok(count)
}

/// Has the owner of a file sent signals, or not (`FIOASYNC`).
pub fn set_async(file: BorrowedFd<'_>, is_on: bool) -> Result<()> {
    let is_on = libc::c_int::from(is_on);
    // SAFETY: FIOASYNC reads one integer, which `is_on` is.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::FIOASYNC, &raw const is_on) }).map(drop)
}

/// Makes a process, by its number here, the owner of a file (`F_SETOWN`); 0 for nobody.
pub fn set_owner(file: BorrowedFd<'_>, pid: i32) -> Result<()> {
    // SAFETY: F_SETOWN takes an integer.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETOWN, pid) }).map(drop)
}

/// `TCP_SYN_SENT` of `net/tcp_states.h`: it is on its way to its peer.
pub const SYN_SENT: u8 = 2;

/// The state of a TCP socket: the first byte of `struct tcp_info` (`TCP_INFO` of tcp(7)).
pub fn tcp_state(socket: BorrowedFd<'_>) -> Result<u8> {
    let mut state = 0_u8;
    let mut len = size_of::<u8>() as libc::socklen_t;
    // SAFETY: `state` and `len` are valid places, and `len` says how much room `state` has.
    let code = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut state).cast(),
            &raw mut len,
        )
    };
    check(code).map(|_| state)
}

/// An integer option of level `SOL_SOCKET`.
pub fn option(socket: BorrowedFd<'_>, name: libc::c_int) -> Result<i32> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` and `len` are valid places, and `len` says how much room `value` has.
    let code = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    check(code).map(|_| value)
}

/// Sets an integer option of level `SOL_SOCKET`.
pub fn set_option(socket: BorrowedFd<'_>, name: libc::c_int, value: i32) -> Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the call reads one integer, which `value` is.
    let code = unsafe {
        let value = (&raw const value).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, value, len)
    };
    check(code).map(drop)
}

/// Sets an option to a value as bytes, which the caller has seen to hold neither addresses nor
/// descriptors.
pub fn set_option_bytes(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &[u8],
) -> Result<()> {
    let len = value.len() as libc::socklen_t;
    // SAFETY: pointer and length are those of `value`, which the call only reads.
    let code =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), len) };
    check(code).map(drop)
}

fn check(code: libc::c_int) -> Result<libc::c_int> {
    if code >= 0 {
        return Ok(code);
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}
