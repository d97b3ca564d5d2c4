//! Services outside that tell whether they were reached.

use crate::sys;
use std::{
    io::{ErrorKind, Read},
    net::{TcpListener, UdpSocket},
    os::unix::net::{UnixDatagram, UnixListener},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// What is sent is on its way for so long at most.
const WAY: Duration = Duration::from_millis(150);

/// Tries until there is an answer, or the time is over.
fn within<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + WAY;
    loop {
        let found = attempt();
        if found.is_some() || Instant::now() > until {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn contains(bytes: &[u8], mark: &str) -> bool {
    bytes.windows(mark.len()).any(|piece| piece == mark.as_bytes())
}

/// What a name server was asked for.
pub(crate) struct Asked(Arc<Mutex<Vec<u8>>>);

impl Asked {
    /// Whether a question with the mark has come.
    pub(crate) fn with(&self, mark: &str) -> bool {
        let asked = || {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            contains(&all, mark).then_some(())
        };
        within(asked).is_some()
    }
}

/// A name server that knows no name. It answers until this program ends, or nobody wants to know
/// any more.
pub(crate) fn name_server(address: &str) -> std::io::Result<Asked> {
    // The one of the run before may still be there for a moment.
    let bound = || match UdpSocket::bind(address) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => None,
        done => Some(done),
    };
    let socket =
        within(bound).or_else(|| within(bound)).unwrap_or_else(|| UdpSocket::bind(address))?;
    socket.set_read_timeout(Some(WAY / 4))?;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::downgrade(&asked);
    std::thread::spawn(move || {
        let mut buffer = [0; 1024];
        while let Some(asked) = seen.upgrade() {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            asked.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..length]);
            if let Some(flags) = buffer.get_mut(2..4) {
                // An answer: there is no such name.
                flags.copy_from_slice(&[0x81, 0x83]);
            }
            let _ = socket.send_to(&buffer[..length], from);
        }
    });
    Ok(Asked(asked))
}

/// Whether a datagram with the mark has come.
pub(crate) fn heard(receiver: &UdpSocket, mark: &str) -> bool {
    let mut buffer = [0; 2048];
    let mut next = || loop {
        match receiver.recv(&mut buffer) {
            Ok(length) if contains(&buffer[..length], mark) => return Some(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(_) => return None,
        }
    };
    within(&mut next).is_some()
}

/// Whether a unix datagram with the mark has come.
pub(crate) fn heard_unix(receiver: &UnixDatagram, mark: &str) -> bool {
    let mut buffer = [0; 2048];
    let next = || receiver.recv(&mut buffer).ok();
    within(next).is_some_and(|length| contains(&buffer[..length], mark))
}

/// Whether somebody has connected by TCP, and sent the mark.
pub(crate) fn reached(listener: &TcpListener, mark: &str) -> bool {
    let _ = listener.set_nonblocking(true);
    let accept = || {
        let (stream, _) = listener.accept().ok()?;
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_read_timeout(Some(WAY));
        Some(stream)
    };
    is_sent(accept, mark)
}

/// Whether somebody has connected to a unix socket, and sent the mark.
pub(crate) fn reached_unix(listener: &UnixListener, mark: &str) -> bool {
    let _ = listener.set_nonblocking(true);
    let accept = || {
        let (stream, _) = listener.accept().ok()?;
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_read_timeout(Some(WAY));
        Some(stream)
    };
    is_sent(accept, mark)
}

/// Whether the mark comes by one of the connections that are accepted.
fn is_sent<S: Read>(mut accept: impl FnMut() -> Option<S>, mark: &str) -> bool {
    while let Some(mut stream) = within(&mut accept) {
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        if contains(&all, mark) {
            return true;
        }
    }
    false
}

/// All packets on the loopback device; only root may listen to them.
pub(crate) struct Packets(std::os::fd::OwnedFd);

impl Packets {
    pub(crate) fn begin() -> std::io::Result<Self> {
        // All protocols, in the order of the network.
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0x0300)?;
        Ok(Self(socket))
    }

    /// Whether a packet has come that `is` says it is.
    pub(crate) fn any(&self, is: impl Fn(&[u8]) -> bool) -> bool {
        let mut buffer = [0; 4096];
        let next = || {
            while let Ok(length) = rustix::io::read(&self.0, &mut buffer) {
                if is(&buffer[..length]) {
                    return Some(());
                }
            }
            None
        };
        within(next).is_some()
    }
}
