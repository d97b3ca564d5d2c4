//! The sockets at which a server listens.

use crate::{config::Config, error::ServerError};
use rustix::{
    fs::{Mode, fchmod},
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
        sockopt::{set_socket_reuseaddr, set_socket_reuseport},
    },
};
use std::{
    fs, io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    os::{
        fd::OwnedFd,
        unix::{fs::FileTypeExt, net::UnixListener},
    },
    path::{Path, PathBuf},
};

/// Connections that wait to be taken.
const BACKLOG: i32 = 1024;

/// One listening socket of one worker.
pub(crate) struct Listener {
    pub(crate) fd: OwnedFd,
    /// Its place in the configuration.
    pub(crate) index: u16,
    pub(crate) is_unix: bool,
    pub(crate) is_tls: bool,
}

/// Listening sockets for every worker.
pub(crate) struct Listeners {
    pub(super) workers: Vec<Vec<Listener>>,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) sockets: Vec<PathBuf>,
}

impl Listeners {
    pub(crate) fn open(config: &Config, workers: usize) -> Result<Self, ServerError> {
        let mut made = Self {
            workers: (0..workers).map(|_| Vec::new()).collect(),
            addresses: Vec::new(),
            sockets: Vec::new(),
        };
        for (index, wanted) in config.listen.iter().enumerate() {
            let cannot = |error| {
                ServerError::system(format!("cannot listen at `{}`", wanted.address), error)
            };
            let (index, is_tls) = (index as u16, wanted.tls.is_some());
            if let Some(path) = wanted.address.strip_prefix("unix:") {
                let path = config.path(Path::new(path));
                let listener = unix_listener(&path, None).map_err(cannot)?;
                made.sockets.push(path);
                for own in &mut made.workers {
                    let fd = OwnedFd::from(listener.try_clone().map_err(cannot)?);
                    own.push(Listener { fd, index, is_unix: true, is_tls: false });
                }
                continue;
            }
            let mut address = resolve(&wanted.address).map_err(cannot)?;
            insist_on_free(address).map_err(cannot)?;
            for own in &mut made.workers {
                let listener = tcp_listener(address).map_err(cannot)?;
                // Port 0 is whichever is free, the same for all.
                address = listener.local_addr().map_err(cannot)?;
                own.push(Listener { fd: listener.into(), index, is_unix: false, is_tls });
            }
            made.addresses.push(address);
        }
        Ok(made)
    }
}

fn resolve(text: &str) -> io::Result<SocketAddr> {
    let found =
        text.to_socket_addrs().map_err(|error| with_form(error, "ADDRESS:PORT or unix:PATH"))?;
    let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no such address");
    found.into_iter().next().ok_or_else(missing)
}

/// What the system says of an address; of one that is none, also how one is written.
pub(crate) fn with_form(error: io::Error, form: &str) -> io::Error {
    match error.kind() {
        kind @ io::ErrorKind::InvalidInput => {
            io::Error::new(kind, format!("{error}; write {form}"))
        }
        _ => error,
    }
}

/// Refuses an address at which somebody listens, also by a socket that shares its port: half of the
/// requests would be that one's.
fn insist_on_free(address: SocketAddr) -> io::Result<()> {
    let fd = tcp_socket(address)?;
    bind(&fd, &address)?;
    Ok(listen(&fd, 1)?)
}

fn tcp_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(family, SocketType::STREAM, flags, None)?;
    set_socket_reuseaddr(&fd, true)?;
    Ok(fd)
}

fn tcp_listener(address: SocketAddr) -> io::Result<TcpListener> {
    let fd = tcp_socket(address)?;
    set_socket_reuseport(&fd, true)?;
    bind(&fd, &address)?;
    listen(&fd, BACKLOG)?;
    Ok(fd.into())
}

/// A socket at `path`, in the place of one at which nobody listens any more; with `mode` from the
/// start, or as the umask leaves it.
pub(crate) fn unix_listener(path: &Path, mode: Option<Mode>) -> io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    // What is no path of a socket is told as the library tells it.
    std::os::unix::net::SocketAddr::from_pathname(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    if let Some(mode) = mode {
        // The name that is bound gets the mode of the socket.
        fchmod(&fd, mode)?;
    }
    bind(&fd, &SocketAddrUnix::new(path)?)?;
    listen(&fd, BACKLOG)?;
    Ok(fd.into())
}
