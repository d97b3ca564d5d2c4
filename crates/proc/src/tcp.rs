//! The kernel's table of TCP sockets, which knows the peers of those that are still connecting
//! (proc_net(5)).

use crate::Proc;
use rustix::io::{Errno, Result};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::AsFd,
};

impl<Fd: AsFd> Proc<Fd> {
    /// The peer of a TCP socket, known by its inode number, in the network that a thread is in;
    /// `None` if it has none.
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`]; `EBADMSG` if the kernel's table cannot be understood.
    pub fn tcp_peer(&self, tid: u32, inode: u64) -> Result<Option<SocketAddr>> {
        for table in self.tcp_tables(tid) {
            let table = table?;
            let Some(peer) = table.lines().skip(1).find_map(|line| of_inode(line, inode)) else {
                continue;
            };
            let peer = address(peer).ok_or(Errno::BADMSG)?;
            return Ok((peer.port() != 0).then_some(peer));
        }
        Ok(None)
    }

    /// Whether a TCP socket listens at an address and port, in the network namespace of thread
    /// `tid`: at that address, or at none in particular.
    ///
    /// # Errors
    ///
    /// As of [`Proc::text`].
    pub fn tcp_listens(&self, tid: u32, ip: IpAddr, port: u16) -> Result<bool> {
        let serves = |own: SocketAddr| {
            own.port() == port && (own.ip().is_unspecified() || own.ip().to_canonical() == ip)
        };
        for table in self.tcp_tables(tid) {
            if listeners(&table?).any(serves) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The kernel's tables of TCP sockets.
    fn tcp_tables(&self, tid: u32) -> impl Iterator<Item = Result<String>> {
        ["tcp", "tcp6"].into_iter().filter_map(move |table| {
            match self.text(&format!("{tid}/net/{table}")) {
                // A kernel without IPv6.
                Err(Errno::NOENT) if table == "tcp6" => None,
                text => Some(text),
            }
        })
    }
}

/// Where sockets of a table (`/proc/net/tcp`, `tcp6`) listen.
pub fn listeners(table: &str) -> impl Iterator<Item = SocketAddr> {
    table.lines().skip(1).filter_map(listener)
}

/// The local address in a line, if it is about a socket that listens (`TCP_LISTEN` of
/// `net/tcp_states.h`).
fn listener(line: &str) -> Option<SocketAddr> {
    let mut fields = line.split_whitespace();
    let own = fields.nth(1)?;
    (fields.nth(1)? == "0A").then(|| address(own))?
}

/// The remote address in a line, if it is about this inode.
fn of_inode(line: &str, inode: u64) -> Option<&str> {
    let mut fields = line.split_whitespace();
    let peer = fields.nth(2)?;
    (fields.nth(6)?.parse() == Ok(inode)).then_some(peer)
}

/// An address: words of the machine's byte order in hexadecimal, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            IpAddr::from(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_its_peer() {
        let line = "   1: 0100007F:9C4E 0200007F:1F90 02 00000000:00000001 01:00000064 00000000     0        0 4711 2";
        assert_eq!(of_inode(line, 4711), Some("0200007F:1F90"));
        assert_eq!(of_inode(line, 4712), None);
    }

    #[test]
    fn a_line_names_a_listener() {
        let line = |state| format!("   2: 0100007F:1F90 00000000:0000 {state} 00000000:00000000 0");
        assert_eq!(listener(&line("0A")), "127.0.0.1:8080".parse().ok());
        assert_eq!(listener(&line("01")), None);
    }

    #[test]
    fn addresses_are_read() {
        assert_eq!(address("0200007F:1F90"), "127.0.0.2:8080".parse().ok());
        let mapped = address("0000000000000000FFFF00000100007F:0050");
        assert_eq!(mapped, "[::ffff:127.0.0.1]:80".parse().ok());
        assert_eq!(
            address("B80D0120000000000000000001000000:01BB"),
            "[2001:db8::1]:443".parse().ok()
        );
        assert_eq!(address("0200007F"), None);
    }
}
