//! Threads that take connections.

mod begun;
mod body;
mod conn;
mod head;
mod modern;
mod out;
mod pace;
mod share;
pub(crate) mod tls;
mod turns;
mod worker;

use crate::{config::Config, error::ServerError, server::Shared};
use rustix::{
    event::{EventfdFlags, eventfd},
    net::{
        AddressFamily, SocketFlags, SocketType, bind, listen, socket_with,
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
    sync::Arc,
    thread::{self, JoinHandle},
};

/// Connections that wait to be taken.
const BACKLOG: i32 = 1024;

/// Wakes a thread that waits.
pub(crate) struct Wake(Arc<OwnedFd>);

impl Wake {
    pub(crate) fn wake(&self) {
        // Full means that it wakes anyway.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

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
    workers: Vec<Vec<Listener>>,
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
                let listener = unix_listener(&path).map_err(cannot)?;
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

/// A socket at `path`, in the place of one at which nobody listens any more.
pub(crate) fn unix_listener(path: &Path) -> io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The server's threads, and what wakes them.
type Threads = (Vec<JoinHandle<()>>, Vec<Wake>);

/// Starts the workers, and beside each of them a thread that speaks TLS and HTTP/2.
pub(crate) fn start(
    shared: &Arc<Shared>,
    listeners: Listeners,
    workers: usize,
) -> Result<Threads, ServerError> {
    let (mut threads, mut wakes) = (Vec::new(), Vec::new());
    for (index, own) in listeners.workers.into_iter().enumerate() {
        let (secure, plain): (Vec<_>, Vec<_>) = own.into_iter().partition(|it| it.is_tls);
        let (handle, modern) = modern::start(shared, index + workers, secure).map_err(starting)?;
        threads.push(modern);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(starting)?;
        let wake = Arc::new(wake);
        wakes.push(Wake(Arc::clone(&wake)));
        let worker = worker::Worker::new(shared, index, plain, (wake, handle)).map_err(starting)?;
        let named = thread::Builder::new().name(format!("web {index}"));
        threads.push(named.spawn(move || worker.run()).map_err(starting)?);
    }
    Ok((threads, wakes))
}

fn starting(error: impl Into<io::Error>) -> ServerError {
    ServerError::system("cannot start a worker", error)
}
