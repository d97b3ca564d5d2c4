//! Connects to ports of the run's own that are under way. A listener has its port for itself as
//! long as it listens: whoever would have it stop has those connects end first, and nobody begins
//! another meanwhile. So none of them reaches who takes the port afterwards.

use rustix::{
    io::{Errno, Result},
    net::{Shutdown, shutdown, sockopt::socket_cookie},
};
use std::{
    collections::HashMap,
    os::fd::{AsFd, OwnedFd},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use supervisor::{
    closing::Duplicate,
    socket::{SYN_SENT, tcp_state},
};

/// The connects that are under way, and the listeners that are about to stop.
#[derive(Debug, Default)]
pub(crate) struct Connects(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The listener, by its cookie, and the socket that is to be connected to it.
    under_way: HashMap<u64, (u64, Duplicate)>,
    /// The number of the last one.
    last: u64,
    ending: Vec<u64>,
}

/// A connect that is under way: its listener goes on listening until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay<'a> {
    of: &'a Connects,
    number: u64,
}

/// A listener to which no connect is under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    of: &'a Connects,
    listener: u64,
}

impl Connects {
    /// Between two looks at whether all have ended.
    const PAUSE: Duration = Duration::from_millis(1);

    /// Begins to connect `socket` to a listener; `ECONNREFUSED` for one that is about to stop.
    pub(super) fn begin(&self, listener: &OwnedFd, socket: &OwnedFd) -> Result<UnderWay<'_>> {
        let listener = socket_cookie(listener)?;
        let copy = Duplicate::from(socket.try_clone().map_err(|_| Errno::NFILE)?);
        let mut state = self.lock();
        if state.ending.contains(&listener) {
            return Err(Errno::CONNREFUSED);
        }
        state.last += 1;
        let number = state.last;
        state.under_way.insert(number, (listener, copy));
        Ok(UnderWay { of: self, number })
    }

    /// Ends what is under way to `listener`, as for its clients the kernel would, but at once.
    pub(crate) fn end_all(&self, listener: impl AsFd) -> Result<Ending<'_>> {
        let listener = socket_cookie(listener)?;
        self.lock().ending.push(listener);
        let ending = Ending { of: self, listener };
        // One that has begun and not come to the kernel yet waits there the next time.
        while self.end_those_that_wait(listener) {
            std::thread::sleep(Self::PAUSE);
        }
        Ok(ending)
    }

    /// Whether some are still under way.
    fn end_those_that_wait(&self, listener: u64) -> bool {
        let state = self.lock();
        let mut to_it = state.under_way.values().filter(|(to, _)| *to == listener).peekable();
        let are_some = to_it.peek().is_some();
        for (_, socket) in to_it {
            if tcp_state(socket.as_fd()) == Ok(SYN_SENT) {
                let _ = shutdown(socket, Shutdown::Both);
            }
        }
        are_some
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let ended = self.of.lock().under_way.remove(&self.number);
        drop(ended);
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        if let Some(at) = state.ending.iter().position(|it| *it == self.listener) {
            state.ending.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType, bind, connect, getsockname, listen, socket};
    use std::net::{Ipv4Addr, SocketAddr};

    fn stream() -> OwnedFd {
        socket(AddressFamily::INET, SocketType::STREAM, None).unwrap()
    }

    /// A listener whose queue is full.
    fn full() -> (OwnedFd, SocketAddr, OwnedFd) {
        let (listener, filling) = (stream(), stream());
        bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        listen(&listener, 0).unwrap();
        let at = SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
        connect(&filling, &at).unwrap();
        (listener, at, filling)
    }

    #[test]
    fn a_listener_stops_when_no_connect_to_it_is_under_way() {
        let (connects, (listener, at, _filling)) = (Connects::default(), full());
        let (waiting, begun) = (stream(), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let connecting = scope.spawn(|| {
                let _under_way = connects.begin(&listener, &waiting).unwrap();
                begun.wait();
                // It comes to the kernel late.
                std::thread::sleep(Duration::from_millis(20));
                connect(&waiting, &at)
            });
            begun.wait();
            let ending = connects.end_all(&listener).unwrap();
            assert!(connects.lock().under_way.is_empty());
            assert_ne!(tcp_state(waiting.as_fd()), Ok(SYN_SENT));
            assert_eq!(connects.begin(&listener, &waiting).err(), Some(Errno::CONNREFUSED));
            let (another, ..) = full();
            assert!(connects.begin(&another, &waiting).is_ok());
            drop(ending);
            assert!(connects.begin(&listener, &waiting).is_ok());
            assert!(connecting.join().unwrap().is_err());
        });
    }
}
