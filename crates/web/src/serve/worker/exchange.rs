//! What happens on a connection: requests are read, answered, and their answers sent.

use super::{HELD, LINGER_MS, Next, PREFACE, PROGRESS, READ, Worker};
use crate::{
    answer::{Answer, Ask, Body, Record},
    clock::now_ms,
    http::{
        chunked::Chunks,
        head::{self, Length, MAX_FIELDS, MAX_HEAD, Refusal, refuse},
    },
    serve::{
        conn::{Chunked, Conn, Phase},
        modern::Handed,
        out::{Out, Sent},
    },
};
use httparse::EMPTY_HEADER;
use rustix::{
    buffer::spare_capacity,
    event::epoll,
    io::Errno,
    net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown},
};
use std::time::{Duration, Instant};

/// How long requests in a row on one connection are answered before others have their turn.
const TURN: Duration = Duration::from_millis(2);

impl Worker {
    pub(super) fn read(&mut self, conn: &mut Conn) -> Next {
        if conn.phase == Phase::Linger {
            return self.linger(conn);
        }
        if conn.input.capacity() == 0 {
            conn.input = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(READ));
        } else if conn.input.capacity() - conn.input.len() < READ / 4 {
            conn.input.reserve(READ);
        }
        match recv(&conn.fd, spare_capacity(&mut conn.input), RecvFlags::empty()) {
            Ok((_, 0)) => Next::End,
            Ok(_) => Next::Go,
            Err(Errno::AGAIN | Errno::INTR) => Next::Wait,
            Err(_) => Next::End,
        }
    }

    /// Throws away what a client sends after our last answer.
    fn linger(&mut self, conn: &mut Conn) -> Next {
        let mut bytes = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(READ));
        let read = recv(&conn.fd, spare_capacity(&mut bytes), RecvFlags::empty());
        self.recycle(bytes);
        match read {
            Ok((_, count)) if count > 0 => Next::Wait,
            Err(Errno::AGAIN | Errno::INTR) => Next::Wait,
            _ => Next::End,
        }
    }

    pub(super) fn resume(&mut self, conn: &mut Conn) -> Next {
        let Some(mut out) = conn.out.take() else { return Next::Go };
        let (held, buffered) = (out.holds_instance(), out.buffered());
        match out.send(&conn.fd) {
            Sent::Blocked => {
                if out.sent() - out.mark >= PROGRESS {
                    out.mark = out.sent();
                    let time = self.responder.site.config.limits.send_ms;
                    conn.deadline = now_ms().wrapping_add(time);
                }
                conn.out = Some(out);
                Next::Wait
            }
            Sent::Gone => {
                self.dropped(*out);
                Next::End
            }
            Sent::All(lease) => {
                self.buffered = self.buffered.saturating_sub(buffered);
                self.held -= usize::from(held);
                if let Some(lease) = lease {
                    self.responder.pool.give_back(lease);
                }
                self.after(conn)
            }
        }
    }

    /// An answer has gone.
    fn after(&mut self, conn: &mut Conn) -> Next {
        if !conn.closes {
            return Next::Go;
        }
        let _ = shutdown(&conn.fd, Shutdown::Write);
        conn.phase = Phase::Linger;
        conn.deadline = now_ms().wrapping_add(LINGER_MS);
        conn.used = conn.input.len();
        Next::Wait
    }

    /// Answers what has come, until nothing more is to be done, or others have waited long enough.
    pub(super) fn drive(&mut self, at: usize, conn: &mut Conn, first: Next) -> Next {
        let (mut next, mut begun) = (first, None);
        while next == Next::Go {
            next = self.request(conn);
            if next == Next::Go && !conn.rest().is_empty() {
                let begun = *begun.get_or_insert_with(Instant::now);
                if begun.elapsed() > TURN {
                    conn.has_more = true;
                    self.ready.push(at);
                    next = Next::Wait;
                }
            }
        }
        if next == Next::Wait {
            next = self.settle(at, conn);
        }
        next
    }

    /// Keeps what was not used; waits for the right thing.
    fn settle(&mut self, at: usize, conn: &mut Conn) -> Next {
        if conn.used == conn.input.len() || conn.phase == Phase::Linger {
            conn.used = 0;
            let buffer = std::mem::take(&mut conn.input);
            self.recycle(buffer);
        } else if conn.used > 0 && conn.chunks.is_none() {
            conn.input.drain(..conn.used);
            conn.used = 0;
        }
        let limits = self.responder.site.config.limits;
        // What waits for its turn, or for the answer before, is all there or takes nothing new.
        let is_coming = conn.out.is_none() && !conn.has_more;
        let fed = conn.chunks.as_ref().map_or(0, |chunked| chunked.fed);
        let kept = if is_coming { conn.input.len() + fed } else { 0 };
        self.incoming = self.incoming.saturating_sub(conn.kept) + kept;
        conn.kept = kept;
        if conn.phase != Phase::Linger {
            let phase = match (&conn.out, conn.input.is_empty()) {
                (Some(_), _) => Phase::Send,
                (None, false) => Phase::Request,
                (None, true) => Phase::Idle,
            };
            if phase != conn.phase || phase == Phase::Idle {
                let time = match phase {
                    Phase::Send => limits.send_ms,
                    Phase::Request => limits.request_ms,
                    _ => limits.idle_ms,
                };
                (conn.phase, conn.deadline) = (phase, now_ms().wrapping_add(time));
            }
        }
        let waits_to_send = conn.out.is_some();
        if waits_to_send != conn.waits_to_send {
            conn.waits_to_send = waits_to_send;
            let flags = if waits_to_send { epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
            let data = epoll::EventData::new_u64(at as u64);
            if epoll::modify(&self.epoll, &conn.fd, data, flags).is_err() {
                return Next::End;
            }
        }
        Next::Wait
    }

    /// Answers the next request, if all of it is there.
    fn request(&mut self, conn: &mut Conn) -> Next {
        if let Some(chunked) = &mut conn.chunks {
            match feed(chunked, &conn.input, self.responder.site.config.limits.body_bytes) {
                Ok(true) => {}
                Ok(false) => return Next::Wait,
                Err(refusal) => return self.refuse(conn, refusal),
            }
        }
        let rest = conn.rest();
        if rest.is_empty() || rest.len() < conn.need {
            return Next::Wait;
        }
        if rest[0] == b'P' && rest.starts_with(&PREFACE[..PREFACE.len().min(rest.len())]) {
            return if rest.len() < PREFACE.len() { Next::Wait } else { self.hand_over(conn) };
        }
        // Empty lines between requests are let pass.
        let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count().min(4);
        if blank > 0 && conn.chunks.is_none() {
            conn.used += blank;
            return Next::Go;
        }
        let begun = Instant::now();
        let input = std::mem::take(&mut conn.input);
        let next = self.parsed(conn, &input, begun);
        conn.input = input;
        match next {
            Ok(next) => next,
            Err(refusal) => self.refuse(conn, refusal),
        }
    }

    fn parsed(&mut self, conn: &mut Conn, input: &[u8], begun: Instant) -> Result<Next, Refusal> {
        let mut room = [EMPTY_HEADER; MAX_FIELDS];
        let rest = &input[conn.used..];
        let Some(head) = head::parse(rest, &mut room)? else {
            // Looking again is of use when an end has come.
            conn.need = rest.len() + 1;
            return Ok(if rest.len() > MAX_HEAD { Next::End } else { Next::Wait });
        };
        let chunks = conn.chunks.take();
        let (body, len) = match (chunks, head.body) {
            (Some(chunked), _) => {
                let len = head.len + chunked.fed;
                (chunked.chunks.into_body(), len)
            }
            (None, Length::Known(0)) => (Vec::new(), head.len),
            (None, length) => {
                let wanted = self.responder.wants_body(head.target);
                match self.body(conn, input, (head.len, length, head.expects_continue), wanted)? {
                    Some((body, len)) => (body, len),
                    None => return Ok(Next::Wait),
                }
            }
        };
        conn.need = 0;
        let unread = matches!(head.body, Length::Known(n) if n > 0 && len == head.len)
            || (head.body == Length::Chunked && len == head.len);
        let keep = head.keep_alive && !unread && !self.responder.shared.ends();
        let ask = Ask {
            method: head.method,
            target: head.target,
            fields: head.fields,
            body: &body,
            label: conn.label,
            peer: conn.peer,
            version: if head.minor == 1 { "HTTP/1.1" } else { "HTTP/1.0" },
        };
        conn.used += len;
        conn.closes = !keep;
        // The next request has its own time.
        conn.phase = Phase::Idle;
        let answer = self.responder.respond(&ask);
        Ok(self.send(conn, &ask, (answer, head.minor), begun))
    }

    /// The body of a request, and how long both are; `None` if it is not all there. One that nobody
    /// wants is not waited for.
    fn body(
        &mut self,
        conn: &mut Conn,
        input: &[u8],
        (head, length, expected): (usize, Length, bool),
        wanted: bool,
    ) -> Result<Option<(Vec<u8>, usize)>, Refusal> {
        let rest = &input[conn.used..];
        let most = self.responder.site.config.limits.body_bytes;
        if !wanted {
            return Ok(Some((Vec::new(), head)));
        }
        if expected && rest.len() == head && conn.need == 0 {
            let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
            let _ = send(&conn.fd, go_on, SendFlags::NOSIGNAL);
        }
        match length {
            Length::Known(len) => {
                let len = usize::try_from(len).ok().filter(|len| *len <= most);
                let len = len.ok_or(refuse(413, "the body is too long"))?;
                conn.need = head + len;
                let body = rest.get(head..head + len);
                Ok(body.map(|body| (body.to_vec(), head + len)))
            }
            Length::Chunked => {
                let (at, chunks) = (conn.used + head, Chunks::default());
                let mut chunked = Box::new(Chunked { head: at, fed: 0, chunks, done: false });
                let all = feed(&mut chunked, input, most)?;
                if all {
                    return Ok(Some((chunked.chunks.into_body(), head + chunked.fed)));
                }
                conn.need = 0;
                conn.chunks = Some(chunked);
                Ok(None)
            }
        }
    }

    fn refuse(&mut self, conn: &mut Conn, refusal: Refusal) -> Next {
        let begun = Instant::now();
        conn.closes = true;
        conn.chunks = None;
        let answer = self.responder.refusal(refusal);
        let ask = Ask {
            method: "-",
            target: refusal.why,
            fields: &[],
            body: &[],
            label: conn.label,
            peer: conn.peer,
            version: "-",
        };
        self.send(conn, &ask, (answer, 1), begun)
    }

    /// Sends an answer, as much of it as goes at once.
    fn send(
        &mut self,
        conn: &mut Conn,
        ask: &Ask<'_>,
        (answer, minor): (Answer, u8),
        begun: Instant,
    ) -> Next {
        let mut head = std::mem::take(&mut self.head);
        head.clear();
        self.responder.head(&answer, minor, !conn.closes, &mut head);
        let Answer { status, body, len, plugin, .. } = answer;
        let next = self.send_parts(conn, &head, body);
        self.head = head;
        let bytes = if ask.method == "HEAD" { 0 } else { len };
        let us = begun.elapsed().as_micros() as u64;
        let plugin = plugin.as_ref().map(|binding| binding.name.as_str());
        self.responder.done(ask, Record { status, bytes, us, plugin });
        next
    }

    fn send_parts(&mut self, conn: &mut Conn, head: &[u8], body: Body) -> Next {
        // What is short goes in one piece, without being kept.
        if let Body::Bytes(bytes) | Body::Own(bytes) = &body
            && bytes.len() <= 64 << 10
        {
            self.head_and(conn, head, bytes.clone())
        } else if let Body::Empty = &body {
            self.head_and(conn, head, bytes::Bytes::new())
        } else {
            self.begin(conn, Out::new(head, body))
        }
    }

    fn head_and(&mut self, conn: &mut Conn, head: &[u8], body: bytes::Bytes) -> Next {
        let parts = [std::io::IoSlice::new(head), std::io::IoSlice::new(&body)];
        let mut none = rustix::net::SendAncillaryBuffer::default();
        let sent = rustix::net::sendmsg(&conn.fd, &parts, &mut none, SendFlags::NOSIGNAL);
        let sent = match sent {
            Ok(sent) if sent == head.len() + body.len() => return self.after(conn),
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return Next::End,
        };
        let mut out = Out::new(head, Body::Bytes(body));
        out.skip(sent as u64);
        self.begin(conn, out)
    }

    fn begin(&mut self, conn: &mut Conn, mut out: Out) -> Next {
        match out.send(&conn.fd) {
            Sent::All(lease) => {
                if let Some(lease) = lease {
                    self.responder.pool.give_back(lease);
                }
                self.after(conn)
            }
            Sent::Gone => {
                if let Some(lease) = out.detach() {
                    self.responder.pool.give_back(lease);
                }
                Next::End
            }
            Sent::Blocked => self.keep(conn, out),
        }
    }

    /// What could not go at once is kept.
    fn keep(&mut self, conn: &mut Conn, mut out: Out) -> Next {
        if out.holds_instance()
            && self.held >= HELD
            && let Some(lease) = out.detach()
        {
            self.responder.pool.give_back(lease);
        }
        self.held += usize::from(out.holds_instance());
        self.buffered += out.buffered();
        conn.out = Some(Box::new(out));
        Next::Wait
    }

    /// HTTP/2 without TLS: the other thread speaks it.
    fn hand_over(&mut self, conn: &mut Conn) -> Next {
        let Ok(fd) = conn.fd.try_clone() else { return Next::End };
        let _ = epoll::delete(&self.epoll, &conn.fd);
        let (label, peer) = (conn.label, conn.peer);
        if conn.is_unix {
            return Next::End;
        }
        self.modern.hand(Handed { fd, read: conn.rest().to_vec(), label, peer });
        Next::End
    }
}

/// Feeds what has come; whether that is the end.
fn feed(chunked: &mut Chunked, input: &[u8], most: usize) -> Result<bool, Refusal> {
    if !chunked.done {
        let (taken, done) = chunked.chunks.feed(&input[chunked.head + chunked.fed..], most)?;
        chunked.fed += taken;
        chunked.done = done;
    }
    Ok(chunked.done)
}
