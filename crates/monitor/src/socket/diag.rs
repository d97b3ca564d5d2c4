//! Whether a unix socket is still there, as the kernel says (sock_diag(7)): wherever it is open,
//! also in a table or a queue that nobody looks into.

use confine::launch::DiagSockets;
use rustix::{
    io::{Errno, Result},
    net::{RecvFlags, SendFlags, recv, send, sockopt::socket_cookie},
};
use std::{
    os::fd::OwnedFd,
    sync::{Mutex, PoisonError},
};

/// Asks about the unix sockets in the network of the sandbox.
#[derive(Debug, Default)]
pub(crate) struct UnixDiag(Mutex<Option<Asking>>);

#[derive(Debug)]
struct Asking {
    sockets: DiagSockets,
    /// The number of the last question.
    last: u32,
}

/// `SOCK_DIAG_BY_FAMILY` of `linux/sock_diag.h`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` and `NLMSG_ERROR` of `linux/netlink.h`.
const REQUEST: u16 = 1;
const ERROR: u16 = 2;

impl UnixDiag {
    pub(crate) fn new(sockets: Option<DiagSockets>) -> Self {
        Self(Mutex::new(sockets.map(|sockets| Asking { sockets, last: 0 })))
    }

    /// Whether the socket with this number and cookie is there; an error where the kernel does not
    /// tell.
    pub(super) fn has(&self, number: u64, cookie: u64) -> Result<bool> {
        let mut asking = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Asking { sockets: DiagSockets { netlink, one }, last } =
            asking.as_mut().ok_or(Errno::OPNOTSUPP)?;
        if ask((netlink, last), number, cookie)? {
            return Ok(true);
        }
        // Without its module for unix sockets, the kernel says the same of each.
        match ask((netlink, last), rustix::fs::fstat(&*one)?.st_ino, socket_cookie(&*one)?)? {
            true => Ok(false),
            false => Err(Errno::OPNOTSUPP),
        }
    }
}

fn ask((netlink, last): (&OwnedFd, &mut u32), number: u64, cookie: u64) -> Result<bool> {
    let number = u32::try_from(number).map_err(|_| Errno::OVERFLOW)?;
    *last = last.wrapping_add(1);
    send(netlink, &request(*last, number, cookie), SendFlags::empty())?;
    let mut reply = [0; 1024];
    // The kernel has answered by now, perhaps also what nobody has fetched.
    loop {
        let (len, _) = recv(netlink, &mut reply, RecvFlags::DONTWAIT)?;
        if word(&reply[..len.min(reply.len())], 8)? == *last {
            return answer(&reply[..len.min(reply.len())]);
        }
    }
}

/// `struct nlmsghdr` and `struct unix_diag_req`.
fn request(question: u32, number: u32, cookie: u64) -> [u8; 40] {
    let [low, high] = [cookie as u32, (cookie >> 32) as u32];
    let header = [40, u32::from(BY_FAMILY) | u32::from(REQUEST) << 16, question, 0];
    let asked = [libc::AF_UNIX as u32, u32::MAX, number, 0, low, high];
    let mut bytes = [0; 40];
    for (place, word) in bytes.chunks_exact_mut(4).zip(header.into_iter().chain(asked)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// `struct nlmsghdr`, and `struct unix_diag_msg` or `struct nlmsgerr` behind it.
fn answer(reply: &[u8]) -> Result<bool> {
    match (word(reply, 4)? as u16, word(reply, 16)?.cast_signed().wrapping_neg()) {
        (BY_FAMILY, _) => Ok(true),
        // Nobody has the number. Where another socket has it (`ESTALE`), there may be more of it:
        // the kernel looks at the first.
        (ERROR, libc::ENOENT) => Ok(false),
        (ERROR, errno @ 1..) => Err(Errno::from_raw_os_error(errno)),
        _ => Err(Errno::BADMSG),
    }
}

fn word(reply: &[u8], at: usize) -> Result<u32> {
    let word = reply.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map(u32::from_le_bytes).ok_or(Errno::BADMSG)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType, socket};

    #[test]
    fn a_socket_is_there_until_its_last_descriptor_is_closed() {
        let diag = UnixDiag::new(DiagSockets::here());
        let made = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        let (number, cookie) =
            (rustix::fs::fstat(&made).unwrap().st_ino, socket_cookie(&made).unwrap());
        assert_eq!(diag.has(number, cookie), Ok(true));
        let another = diag.has(number, cookie + 1);
        assert_eq!(another, Err(Errno::STALE), "there may be two with its number");
        let copy = made.try_clone().unwrap();
        drop(made);
        assert_eq!(diag.has(number, cookie), Ok(true));
        drop(copy);
        assert_eq!(diag.has(number, cookie), Ok(false));
        assert_eq!(diag.has(u64::MAX, cookie), Err(Errno::OVERFLOW));
    }

    #[test]
    fn what_the_kernel_does_not_answer_is_not_known() {
        assert_eq!(UnixDiag::default().has(1, 1), Err(Errno::OPNOTSUPP));
        let reply = |kind: u16, errno: i32| {
            let words = [20, u32::from(kind), 1, 0, errno.cast_unsigned()];
            words.map(u32::to_le_bytes).concat()
        };
        assert_eq!(answer(&reply(BY_FAMILY, 0)), Ok(true));
        assert_eq!(answer(&reply(ERROR, -libc::ENOENT)), Ok(false));
        assert_eq!(answer(&reply(ERROR, -libc::EPERM)), Err(Errno::PERM));
        assert_eq!(answer(&reply(ERROR, 0)), Err(Errno::BADMSG));
        assert_eq!(answer(&reply(3, 0)), Err(Errno::BADMSG));
        assert_eq!(answer(&reply(BY_FAMILY, 0)[..12]), Err(Errno::BADMSG));
    }
}
