//! An epoll loop, and nothing else.

use crate::{asked, whole};
use rustix::{
    buffer::spare_capacity,
    event::epoll::{self, CreateFlags, EventData, EventFlags},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};
use std::{
    collections::HashMap,
    net::{SocketAddr, TcpListener, TcpStream},
};

const LISTENER: u64 = u64::MAX;

struct Conn {
    stream: TcpStream,
    answer: Vec<u8>,
    /// Where sending goes on when there is room again.
    sent: Option<usize>,
}

pub(crate) fn serve(address: SocketAddr) {
    let listener = TcpListener::bind(address).expect("a port");
    let epoll = epoll::create(CreateFlags::CLOEXEC).expect("an epoll");
    let data = EventData::new_u64(LISTENER);
    epoll::add(&epoll, &listener, data, EventFlags::IN).expect("a listener");
    let (mut conns, mut next) = (HashMap::new(), 0);
    let mut events = Vec::with_capacity(256);
    loop {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None).expect("events");
        for event in &events {
            let token = event.data.u64();
            if token == LISTENER {
                let (stream, _) = listener.accept().expect("a connection");
                stream
                    .set_nonblocking(true)
                    .and_then(|()| stream.set_nodelay(true))
                    .expect("options");
                epoll::add(&epoll, &stream, EventData::new_u64(next), EventFlags::IN)
                    .expect("an event");
                conns.insert(next, Conn { stream, answer: Vec::new(), sent: None });
                next += 1;
                continue;
            }
            let Some(conn) = conns.get_mut(&token) else { continue };
            let waited = conn.sent.is_some();
            if !conn.go() {
                conns.remove(&token);
                continue;
            }
            if waited != conn.sent.is_some() {
                let flags = if waited { EventFlags::IN } else { EventFlags::OUT };
                epoll::modify(&epoll, &conn.stream, EventData::new_u64(token), flags)
                    .expect("an event");
            }
        }
    }
}

impl Conn {
    /// Reads and answers as far as it goes; whether the connection goes on.
    fn go(&mut self) -> bool {
        if self.sent.is_none() {
            let mut input = [0; 4096];
            let count = match recv(&self.stream, &mut input, RecvFlags::empty()) {
                Ok((_, count @ 1..)) => count,
                Err(Errno::AGAIN) => return true,
                _ => return false,
            };
            let Some(len) = asked(&input[..count]) else { return false };
            if self.answer.len() < len {
                self.answer = whole(len);
            }
            self.sent = Some(0);
        }
        while let Some(sent) = self.sent {
            match send(&self.stream, &self.answer[sent..], SendFlags::NOSIGNAL) {
                Ok(count) if sent + count == self.answer.len() => self.sent = None,
                Ok(count) => self.sent = Some(sent + count),
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}
