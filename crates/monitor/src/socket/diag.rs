//! What the kernel says of a unix socket (sock_diag(7)): whether it is still there, wherever it is
//! open, also in a table or a queue that nobody looks into; and which file it is bound to.

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
/// `UDIAG_SHOW_VFS` and `UNIX_DIAG_VFS` of `linux/unix_diag.h`.
const SHOW_FILE: u32 = 2;
const FILE: u16 = 1;

/// The file of a socket: the device of its file system, major and minor, and the lower half of its
/// number there.
pub(super) type SocketFile = ((u32, u32), u32);

/// What is said of a socket that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    file: Option<SocketFile>,
}

impl UnixDiag {
    pub(crate) fn new(sockets: Option<DiagSockets>) -> Self {
        Self(Mutex::new(sockets.map(|sockets| Asking { sockets, last: 0 })))
    }

    /// Whether the socket with this number and cookie is there; an error where the kernel does not
    /// tell.
    pub(super) fn has(&self, number: u64, cookie: u64) -> Result<bool> {
        self.told(number, cookie).map(|told| told.is_some())
    }

    /// The file that the socket with this number and cookie is bound to, if it is to one; an error
    /// where the kernel does not tell.
    pub(super) fn file(&self, number: u64, cookie: u64) -> Result<Option<SocketFile>> {
        self.told(number, cookie).map(|told| told.and_then(|told| told.file))
    }

    /// Whether the kernel tells of sockets.
    pub(super) fn tells(&self) -> bool {
        let asking = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Asking { sockets: DiagSockets { one, .. }, .. }) = asking.as_ref() else {
            return false;
        };
        let one = rustix::fs::fstat(one).and_then(|it| Ok((it.st_ino, socket_cookie(one)?)));
        drop(asking);
        one.and_then(|(number, cookie)| self.has(number, cookie)) == Ok(true)
    }

    fn told(&self, number: u64, cookie: u64) -> Result<Option<Told>> {
        let mut asking = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Asking { sockets: DiagSockets { netlink, one }, last } =
            asking.as_mut().ok_or(Errno::OPNOTSUPP)?;
        if let Some(told) = ask((netlink, last), number, cookie)? {
            return Ok(Some(told));
        }
        // Without its module for unix sockets, the kernel says the same of each.
        match ask((netlink, last), rustix::fs::fstat(&*one)?.st_ino, socket_cookie(&*one)?)? {
            Some(_) => Ok(None),
            None => Err(Errno::OPNOTSUPP),
        }
    }
}

fn ask((netlink, last): (&OwnedFd, &mut u32), number: u64, cookie: u64) -> Result<Option<Told>> {
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
    let asked = [libc::AF_UNIX as u32, u32::MAX, number, SHOW_FILE, low, high];
    let mut bytes = [0; 40];
    for (place, word) in bytes.chunks_exact_mut(4).zip(header.into_iter().chain(asked)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// `struct nlmsghdr`, and `struct unix_diag_msg` or `struct nlmsgerr` behind it.
fn answer(reply: &[u8]) -> Result<Option<Told>> {
    match (word(reply, 4)? as u16, word(reply, 16)?.cast_signed().wrapping_neg()) {
        (BY_FAMILY, _) => Ok(Some(Told { file: file(reply) })),
        // Nobody has the number. Where another socket has it (`ESTALE`), there may be more of it:
        // the kernel looks at the first.
        (ERROR, libc::ENOENT) => Ok(None),
        (ERROR, errno @ 1..) => Err(Errno::from_raw_os_error(errno)),
        _ => Err(Errno::BADMSG),
    }
}

/// `struct unix_diag_vfs` among the attributes behind `struct unix_diag_msg`. The device is as the
/// kernel itself has it (`MKDEV` of `linux/kdev_t.h`).
fn file(reply: &[u8]) -> Option<SocketFile> {
    let mut at = 32;
    loop {
        let header = word(reply, at).ok()?;
        let (len, kind) = ((header & 0xffff) as usize, (header >> 16) as u16);
        if kind == FILE && len == 12 {
            let (number, device) = (word(reply, at + 4).ok()?, word(reply, at + 8).ok()?);
            return Some(((device >> 20, device & 0xf_ffff), number));
        }
        at = at.checked_add(len.max(4).next_multiple_of(4))?;
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
    fn the_file_of_a_socket_is_the_one_that_it_was_bound_to_whatever_lies_there_by_now() {
        use std::os::{fd::AsFd as _, linux::fs::MetadataExt as _, unix::net::UnixListener};
        let diag = UnixDiag::new(DiagSockets::here());
        let of = |socket: &UnixListener| {
            let number = rustix::fs::fstat(socket).unwrap().st_ino;
            diag.file(number, socket_cookie(socket.as_fd()).unwrap()).unwrap()
        };
        // Where the programs are built: tmpfs has devices without a major number.
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = place.path().join("socket");
        let bound = UnixListener::bind(&path).unwrap();
        let status = std::fs::metadata(&path).unwrap();
        let device = (libc::major(status.st_dev()), libc::minor(status.st_dev()));
        assert_eq!(of(&bound), Some((device, status.st_ino() as u32)));
        std::fs::remove_file(&path).unwrap();
        let another = UnixListener::bind(&path).unwrap();
        assert_ne!(of(&bound), of(&another));
        let nowhere = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        assert_eq!(of(&nowhere.into()), None);
        assert!(diag.tells() && !UnixDiag::default().tells());
    }

    #[test]
    fn what_the_kernel_does_not_answer_is_not_known() {
        assert_eq!(UnixDiag::default().has(1, 1), Err(Errno::OPNOTSUPP));
        let reply = |kind: u16, errno: i32| {
            let words = [20, u32::from(kind), 1, 0, errno.cast_unsigned()];
            words.map(u32::to_le_bytes).concat()
        };
        assert_eq!(answer(&reply(BY_FAMILY, 0)), Ok(Some(Told { file: None })));
        assert_eq!(answer(&reply(ERROR, -libc::ENOENT)), Ok(None));
        assert_eq!(answer(&reply(ERROR, -libc::EPERM)), Err(Errno::PERM));
        assert_eq!(answer(&reply(ERROR, 0)), Err(Errno::BADMSG));
        assert_eq!(answer(&reply(3, 0)), Err(Errno::BADMSG));
        assert_eq!(answer(&reply(BY_FAMILY, 0)[..12]), Err(Errno::BADMSG));
    }
}
