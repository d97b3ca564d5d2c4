//! One worker: its connections, and what happens on them.

mod exchange;
mod room;

use super::{
    conn::{Conn, Phase},
    listener::Listener,
    modern::Handle,
    out::Out,
};
use crate::{
    answer::Responder,
    clock::{now_ms, passed},
    shared::Shared,
};
use flask::Sid;
use rustix::{
    buffer::spare_capacity,
    event::{Timespec, epoll},
    io::Errno,
    net::{SendFlags, SocketAddrAny, SocketFlags, acceptfrom_with, send, sockopt},
};
use std::{
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// Tokens of what are no connections: the wake, and listeners from there on.
const WAKE: u64 = u64::MAX;
const LISTEN: u64 = 1 << 48;
/// Room for what one call reads.
const READ: usize = 16 << 10;
/// Buffers that are kept for the next bytes.
const SPARE: usize = 32;
/// Instances that may wait for slow clients.
const HELD: usize = 8;
/// Bytes of replies that may wait for slow clients, of one worker.
const BUFFERED: usize = 128 << 20;
/// A client that takes so much gets its time anew.
const PROGRESS: u64 = 16 << 10;
/// How long a client may send on after our last answer.
const LINGER_MS: u32 = 2000;
/// Events taken at a time.
const EVENTS: usize = 256;
/// What there is no room for is told so.
const SORRY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) struct Worker {
    responder: Responder,
    epoll: OwnedFd,
    wake: Arc<OwnedFd>,
    listeners: Vec<Listener>,
    listening: bool,
    modern: Handle,
    conns: Vec<Option<Box<Conn>>>,
    free: Vec<usize>,
    /// Connections that ended during this turn: events for them may still come.
    ended: Vec<usize>,
    spare: Vec<Vec<u8>>,
    head: Vec<u8>,
    held: usize,
    buffered: usize,
    /// Bytes of requests that are not all there yet.
    incoming: usize,
    /// Connections with requests that wait for their next turn.
    ready: Vec<usize>,
    swept: u32,
    ends_at: Option<u32>,
}

/// What is to be done with a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Look at what else has come.
    Go,
    /// Wait.
    Wait,
    End,
}

impl Worker {
    pub(super) fn new(
        shared: &Arc<Shared>,
        index: usize,
        listeners: Vec<Listener>,
        (wake, modern): (Arc<OwnedFd>, Handle),
    ) -> rustix::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        let mut worker = Self {
            responder: Responder::new(shared, index),
            epoll,
            wake,
            listeners,
            listening: false,
            modern,
            conns: Vec::new(),
            free: Vec::new(),
            ended: Vec::new(),
            spare: Vec::new(),
            head: Vec::with_capacity(1024),
            held: 0,
            buffered: 0,
            incoming: 0,
            ready: Vec::new(),
            swept: now_ms(),
            ends_at: None,
        };
        worker.listen(true)?;
        Ok(worker)
    }

    fn listen(&mut self, on: bool) -> rustix::io::Result<()> {
        if on == self.listening {
            return Ok(());
        }
        for (at, listener) in self.listeners.iter().enumerate() {
            if on {
                let data = epoll::EventData::new_u64(LISTEN + at as u64);
                let flags = if listener.is_unix {
                    epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE
                } else {
                    epoll::EventFlags::IN
                };
                epoll::add(&self.epoll, &listener.fd, data, flags)?;
            } else {
                epoll::delete(&self.epoll, &listener.fd)?;
            }
        }
        self.listening = on;
        Ok(())
    }

    /// Works until the server ends.
    pub(super) fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        let [at_once, second] = [0, 500_000_000].map(|tv_nsec| Timespec { tv_sec: 0, tv_nsec });
        loop {
            events.clear();
            let most = if self.ready.is_empty() { &second } else { &at_once };
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(most)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    self.responder.shared.report(&format!("a worker cannot wait: {error}"));
                    return;
                }
            }
            self.responder.refresh();
            for event in &events {
                self.event(event.data.u64(), event.flags);
            }
            self.go_on();
            self.free.append(&mut self.ended);
            let now = now_ms();
            if now.wrapping_sub(self.swept) >= 500 {
                self.swept = now;
                self.sweep(now);
                self.responder.settle();
            }
            if self.responder.shared.ends() && self.is_over(now) {
                self.responder.settle();
                return;
            }
        }
    }

    /// The server ends: takes nothing new; whether nothing is under way any more.
    fn is_over(&mut self, now: u32) -> bool {
        if self.ends_at.is_none() {
            let grace = self.responder.site.config.limits.grace_ms;
            self.ends_at = Some(now.wrapping_add(grace));
            let _ = self.listen(false);
            self.listeners.clear();
        }
        for at in 0..self.conns.len() {
            let idle = self.conns[at].as_ref().is_some_and(|conn| conn.phase == Phase::Idle);
            if idle && let Some(conn) = self.conns[at].take() {
                self.end(at, *conn);
            }
        }
        self.free.append(&mut self.ended);
        let is_late = self.ends_at.is_some_and(|end| passed(end, now));
        is_late || self.free.len() == self.conns.len()
    }

    fn event(&mut self, token: u64, flags: epoll::EventFlags) {
        if token == WAKE {
            let _ = rustix::io::read(&self.wake, &mut [0_u8; 8]);
            return;
        }
        if token >= LISTEN {
            self.accept((token - LISTEN) as usize);
            return;
        }
        let at = token as usize;
        // It may have ended earlier in this turn. One that waits for its turn takes nothing new.
        let waiting =
            self.conns.get_mut(at).filter(|it| it.as_ref().is_some_and(|it| !it.has_more));
        let Some(mut conn) = waiting.and_then(Option::take) else { return };
        let next = if conn.out.is_some() {
            self.resume(&mut conn)
        } else if flags
            .intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR)
        {
            self.read(&mut conn)
        } else {
            Next::Wait
        };
        let next = self.drive(at, &mut conn, next);
        self.put_back(at, conn, next);
    }

    /// Answers more on connections that had to let others have their turn.
    fn go_on(&mut self) {
        for at in std::mem::take(&mut self.ready) {
            let waiting =
                self.conns.get_mut(at).filter(|it| it.as_ref().is_some_and(|it| it.has_more));
            let Some(mut conn) = waiting.and_then(Option::take) else { continue };
            conn.has_more = false;
            let next = self.drive(at, &mut conn, Next::Go);
            self.put_back(at, conn, next);
        }
    }

    fn accept(&mut self, listener: usize) {
        for _ in 0..64 {
            let Some(from) = self.listeners.get(listener) else { return };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (fd, address) = match acceptfrom_with(&from.fd, flags) {
                Ok(accepted) => accepted,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    // Out of descriptors or memory: those that wait have to wait.
                    self.responder.shared.report(&format!("cannot take a connection: {error}"));
                    let _ = self.listen(false);
                    return;
                }
            };
            let peer = address.as_ref().and_then(peer);
            let label = self.label(listener, &fd);
            self.responder.counters().accepted.add(1);
            if !self.responder.shared.has_room() {
                self.responder.counters().refused.add(1);
                let _ = send(&fd, SORRY, SendFlags::NOSIGNAL);
                continue;
            }
            if peer.is_some() {
                let _ = sockopt::set_tcp_nodelay(&fd, true);
            }
            let idle = self.responder.site.config.limits.idle_ms;
            let conn = Conn::new(fd, peer, label, now_ms().wrapping_add(idle));
            self.insert(Box::new(conn));
        }
    }

    /// The label of requests on a connection: that of the process behind a unix socket, or of the
    /// listener.
    fn label(&self, listener: usize, fd: &OwnedFd) -> Sid {
        let shared = &self.responder.shared;
        let (index, is_unix) = self
            .listeners
            .get(listener)
            .map_or((0, false), |it| (usize::from(it.index), it.is_unix));
        let listen = &self.responder.site.config.listen[index];
        if is_unix && !listen.users.is_empty() {
            let user = ipc::peer_user(fd.as_fd()).ok().map(|user| user.to_string());
            let context = user.and_then(|user| listen.users.get(&user));
            if let Some(sid) = context.and_then(|context| shared.manager.sid(context).ok()) {
                return sid;
            }
        }
        self.responder.site.labels[index]
    }

    fn insert(&mut self, conn: Box<Conn>) {
        let at = self.free.pop().unwrap_or_else(|| {
            self.conns.push(None);
            self.conns.len() - 1
        });
        let data = epoll::EventData::new_u64(at as u64);
        match epoll::add(&self.epoll, &conn.fd, data, epoll::EventFlags::IN) {
            Ok(()) => {
                self.responder.counters().open.add(1);
                self.conns[at] = Some(conn);
            }
            Err(_) => {
                self.responder.shared.connections.fetch_sub(1, Relaxed);
                self.free.push(at);
            }
        }
    }

    fn end(&mut self, at: usize, conn: Conn) {
        let mut conn = conn;
        self.incoming = self.incoming.saturating_sub(conn.kept);
        if let Some(out) = conn.out.take() {
            self.dropped(*out);
        }
        self.recycle(std::mem::take(&mut conn.input));
        let counters = self.responder.counters();
        counters.open.set(counters.open.get().saturating_sub(1));
        self.responder.shared.connections.fetch_sub(1, Relaxed);
        self.ended.push(at);
        if !self.listening && !self.responder.shared.ends() {
            let _ = self.listen(true);
        }
    }

    fn dropped(&mut self, mut out: Out) {
        self.buffered = self.buffered.saturating_sub(out.buffered());
        if let Some(lease) = out.detach() {
            self.held = self.held.saturating_sub(1);
            self.responder.pool.give_back(lease);
        }
    }

    fn recycle(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() > 0 && buffer.capacity() <= 4 * READ && self.spare.len() < SPARE {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Ends connections whose time is over; frees instances that wait for slow clients.
    fn sweep(&mut self, now: u32) {
        for at in 0..self.conns.len() {
            let Some(conn) = &mut self.conns[at] else { continue };
            if let Some(out) = conn.out.as_mut().filter(|out| out.holds_instance()) {
                let lease = out.detach();
                self.buffered += out.buffered();
                self.held = self.held.saturating_sub(1);
                if let Some(lease) = lease {
                    self.responder.pool.give_back(lease);
                }
            }
            if !passed(conn.deadline, now) {
                continue;
            }
            if let Some(conn) = self.conns[at].take() {
                if conn.phase == Phase::Request {
                    let late = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
                    let _ = send(&conn.fd, late, SendFlags::NOSIGNAL);
                }
                if conn.phase != Phase::Idle {
                    self.responder.counters().timeouts.add(1);
                }
                self.end(at, *conn);
            }
        }
        self.make_room();
        self.free.append(&mut self.ended);
        if !self.listening && self.ends_at.is_none() {
            let _ = self.listen(true);
        }
    }
}

fn peer(address: &SocketAddrAny) -> Option<IpAddr> {
    SocketAddr::try_from(address.clone()).ok().map(|address| address.ip())
}
