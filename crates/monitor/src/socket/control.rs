//! Control messages that a program sends along: descriptors are its own, not the monitor's; what
//! chooses another way or another source than the address says is decided as an option of the
//! socket.

use super::{SocketAsker, caller_socket::Socket, names::is_ip, options, sender};
use audit::Refusal;
use rustix::io::{Errno, Result};
use std::os::fd::AsRawFd;
use supervisor::{Passing, closing::Duplicate};

/// Size of `struct cmsghdr`; every message begins at a multiple of 8.
const HEADER: usize = 16;
/// `SCM_MAX_FD` of `net/scm.h`.
const MOST_DESCRIPTORS: usize = 253;

/// Control messages in the form in which the monitor sends them.
#[derive(Debug, Default)]
pub(super) struct Control<'a> {
    pub(super) bytes: Vec<u8>,
    /// Duplicates of the program's descriptors, which `bytes` names.
    passed: Vec<Duplicate>,
    /// Room for them.
    rooms: Vec<Passing<'a>>,
}

impl<'a> Control<'a> {
    /// Decides about the control messages in `bytes`, which `asker` sends by `socket`.
    pub(super) fn of(asker: SocketAsker<'a>, socket: &Socket, bytes: &[u8]) -> Result<Self> {
        let mut control = Self { bytes: bytes.to_vec(), ..Self::default() };
        for message in messages(bytes)? {
            match (message.level, message.name) {
                (libc::SOL_SOCKET, libc::SCM_RIGHTS) if socket.family == libc::AF_UNIX => {
                    control.pass(asker, &message)?;
                }
                // The kernel leaves them out (`__sock_cmsg_send` of `net/core/sock.c`).
                (libc::SOL_SOCKET, libc::SCM_RIGHTS | libc::SCM_CREDENTIALS)
                    if is_ip(socket.family) => {}
                // Only local sockets pass descriptors (`__scm_send` of `net/core/scm.c`).
                (libc::SOL_SOCKET, libc::SCM_RIGHTS) => return Err(Errno::INVAL),
                // They would be the monitor's.
                (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => {
                    return Err(sender::refuse_credentials(asker, socket));
                }
                _ if message.is_plain() => {}
                (level, name) => options::allow_one(asker, socket, level, name)?,
            }
        }
        Ok(control)
    }

    fn pass(&mut self, asker: SocketAsker<'a>, message: &Message<'_>) -> Result<()> {
        let count = message.data.len() / 4;
        if self.passed.len() + count > MOST_DESCRIPTORS {
            return Err(Errno::INVAL);
        }
        let room = asker.asker.state.room.pass(count);
        self.rooms.push(room.ok_or_else(|| asker.refuse(&too_many(count)))?);
        for (index, number) in message.data.chunks_exact(4).enumerate() {
            let number = i32::from_ne_bytes(number.try_into().unwrap_or_default());
            let own = asker.duplicate(number)?;
            let at = message.at + HEADER + index * 4;
            self.bytes[at..at + 4].copy_from_slice(&own.as_raw_fd().to_ne_bytes());
            self.passed.push(own);
        }
        Ok(())
    }
}

/// The refusal of descriptors beside those that the monitor is sending already.
fn too_many(count: usize) -> Refusal {
    Refusal {
        errno: Errno::TOOMANYREFS,
        by: "the socket object manager",
        tclass: "fd",
        missing: "pass",
        object: format!("{count} descriptors"),
        reason: "messages of this run that wait at full queues have as many descriptors with them as the monitor holds for it",
        instead: "receive what was sent before more is sent: 1024 descriptors are held at once, or a quarter of `ulimit -Hn`",
    }
}

/// One control message.
#[derive(Debug, PartialEq, Eq)]
struct Message<'a> {
    /// Where its header begins.
    at: usize,
    level: i32,
    name: i32,
    data: &'a [u8],
}

impl Message<'_> {
    /// Whether it changes neither the way of a packet nor where it comes from.
    fn is_plain(&self) -> bool {
        let word = |at: usize| self.data.get(at..at + 4).map(|word| word.iter().all(|it| *it == 0));
        match (self.level, self.name) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPING | libc::SO_TIMESTAMPING_NEW)
            | (libc::IPPROTO_IP, libc::IP_TOS | libc::IP_TTL)
            | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT | libc::IPV6_TCLASS | libc::IPV6_DONTFRAG)
            | (libc::SOL_UDP, libc::UDP_SEGMENT) => true,
            // An address of this machine; but an interface only if it is one's own choice.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => word(0) == Some(true),
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => word(16) == Some(true),
            _ => false,
        }
    }
}

/// Whether there are credentials among the control messages in `bytes`.
pub(super) fn has_credentials(bytes: &[u8]) -> bool {
    let are = |it: &Message<'_>| (it.level, it.name) == (libc::SOL_SOCKET, libc::SCM_CREDENTIALS);
    messages(bytes).is_ok_and(|all| all.iter().any(are))
}

/// The messages in `bytes`, as the kernel finds them (`for_each_cmsghdr` of `linux/socket.h`).
fn messages(bytes: &[u8]) -> Result<Vec<Message<'_>>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(header) = bytes.get(at..at + HEADER) {
        let word =
            |at: usize| i32::from_ne_bytes(header[at..at + 4].try_into().unwrap_or_default());
        let len = u64::from_ne_bytes(header[..8].try_into().unwrap_or_default());
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let whole = len.checked_add(at).filter(|_| len >= HEADER);
        let data = whole.and_then(|end| bytes.get(at + HEADER..end)).ok_or(Errno::INVAL)?;
        found.push(Message { at, level: word(8), name: word(12), data });
        at += len.next_multiple_of(8);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, name: i32, data: &[u8]) -> Vec<u8> {
        let len = (HEADER + data.len()).to_ne_bytes();
        let mut bytes = [&len[..], &level.to_ne_bytes(), &name.to_ne_bytes(), data].concat();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn messages_are_found_as_the_kernel_finds_them() {
        let two = [message(1, 1, &[7; 4]), message(41, 57, &[1; 24])].concat();
        let found = messages(&two).unwrap();
        assert_eq!(found[0], Message { at: 0, level: 1, name: 1, data: &[7; 4] });
        assert_eq!(found[1], Message { at: 24, level: 41, name: 57, data: &[1; 24] });
        assert_eq!(messages(&two[..30]).unwrap().len(), 1);
        for len in [0_u64, 15, 41, u64::MAX, u64::MAX - 7] {
            let mut bad = message(1, 1, &[0; 16]);
            bad[..8].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(messages(&bad), Err(Errno::INVAL), "{len}");
        }
    }

    #[test]
    fn what_leads_a_packet_elsewhere_is_not_plain() {
        let plain = |level, name, data: &[u8]| {
            let bytes = message(level, name, data);
            messages(&bytes).unwrap()[0].is_plain()
        };
        assert!(plain(0, libc::IP_PKTINFO, &[0; 12]));
        assert!(!plain(0, libc::IP_PKTINFO, &[1; 12]));
        assert!(!plain(41, libc::IPV6_PKTINFO, &[1; 20]));
        for name in [libc::IPV6_RTHDR, libc::IPV6_HOPOPTS, libc::IPV6_DSTOPTS] {
            assert!(!plain(41, name, &[0; 8]));
        }
        assert!(!plain(0, libc::IP_RETOPTS, &[0; 8]));
        assert!(!plain(1, libc::SO_MARK, &[0; 4]));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(0u8.., 0..256)) {
            let _ = messages(&bytes);
        }
    }
}
