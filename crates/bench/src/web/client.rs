//! Who asks: some connections that are kept, with as many requests under way. What comes back is
//! counted, and not copied out of the kernel, so that the client takes little of the processors
//! that it shares with the server.

use super::{Server, WebError};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, recv},
};
use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

/// What one call takes.
const PIECE: usize = 1 << 20;
/// No head of an answer is longer.
const HEAD: usize = 4096;

/// Connections over which one thing is asked for.
pub(super) struct Load {
    request: Vec<u8>,
    conns: Vec<Conn>,
    next: usize,
    piece: Vec<u8>,
}

struct Conn {
    stream: TcpStream,
    state: State,
    head: Vec<u8>,
}

/// What of an answer is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Head,
    Body(usize),
    Chunks(Chunks),
}

/// Where in a body in chunks it is: so many bytes to pass over, or within a line that says a
/// length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Chunks {
    skip: usize,
    size: usize,
    is_last: bool,
    /// An extension of the line, which says nothing here.
    is_said: bool,
}

impl Load {
    /// Connects so many times.
    pub(super) fn open(server: &Server, path: &str, connections: usize) -> io::Result<Self> {
        let connect = || {
            let stream = TcpStream::connect(("127.0.0.1", server.port))?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(Conn { stream, state: State::Idle, head: Vec::new() })
        };
        let conns = (0..connections).map(|_| connect()).collect::<io::Result<_>>()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes();
        Ok(Self { request, conns, next: 0, piece: vec![0; PIECE] })
    }

    /// Asks so many times, or as often as `time` allows; how often. At most so many requests are
    /// under way.
    pub(super) fn ask(
        &mut self,
        times: usize,
        under_way: usize,
        time: Duration,
    ) -> io::Result<usize> {
        let end = Instant::now() + time;
        let most = under_way.min(self.conns.len()).min(times);
        let mut flying = (0..most).map(|_| self.begin()).collect::<io::Result<Vec<_>>>()?;
        let (mut begun, mut done) = (most, 0);
        while !flying.is_empty() {
            self.wait(&flying)?;
            let mut at = 0;
            while at < flying.len() {
                if !self.conns[flying[at]].step(&mut self.piece)? {
                    at += 1;
                    continue;
                }
                done += 1;
                if begun < times && Instant::now() < end {
                    flying[at] = self.begin()?;
                    begun += 1;
                    at += 1;
                } else {
                    flying.swap_remove(at);
                }
            }
        }
        Ok(done)
    }

    fn begin(&mut self) -> io::Result<usize> {
        while self.conns[self.next].state != State::Idle {
            self.next = (self.next + 1) % self.conns.len();
        }
        let at = self.next;
        self.next = (self.next + 1) % self.conns.len();
        let conn = &mut self.conns[at];
        conn.stream.write_all(&self.request)?;
        conn.head.clear();
        conn.state = State::Head;
        Ok(at)
    }

    fn wait(&self, flying: &[usize]) -> io::Result<()> {
        let watch = |at: &usize| PollFd::new(&self.conns[*at].stream, PollFlags::IN);
        let mut fds: Vec<PollFd<'_>> = flying.iter().map(watch).collect();
        let patience = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
        match poll(&mut fds, Some(&patience)) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer within a minute")),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Conn {
    /// Takes what has come; whether the answer is complete.
    fn step(&mut self, piece: &mut [u8]) -> io::Result<bool> {
        loop {
            let (room, flags) = match self.state {
                State::Idle => return Ok(true),
                State::Head => (HEAD, RecvFlags::empty()),
                // Thrown away by the kernel.
                State::Body(left) => (left.min(PIECE), RecvFlags::TRUNC),
                State::Chunks(_) => (PIECE, RecvFlags::empty()),
            };
            let count = match recv(&self.stream, &mut piece[..room], flags) {
                Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((_, count)) => count,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            match &mut self.state {
                State::Idle => {}
                State::Head => self.head(&piece[..count])?,
                State::Body(left) => *left -= count,
                State::Chunks(chunks) => chunks.pass(&piece[..count])?,
            }
            let is_done = match self.state {
                State::Body(left) => left == 0,
                State::Chunks(chunks) => chunks.is_last && chunks.skip == 0,
                State::Idle | State::Head => false,
            };
            if is_done {
                self.state = State::Idle;
                return Ok(true);
            }
        }
    }

    fn head(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.head.extend_from_slice(bytes);
        let Some(end) = self.head.windows(4).position(|it| it == b"\r\n\r\n") else {
            return match self.head.len() {
                len if len > HEAD => Err(io::Error::other("an answer with a head without an end")),
                _ => Ok(()),
            };
        };
        let head = String::from_utf8_lossy(&self.head[..end]).to_ascii_lowercase();
        if !head.starts_with("http/1.1 200") {
            let line = head.lines().next().unwrap_or_default();
            return Err(io::Error::other(format!("answered `{line}`")));
        }
        let rest = &self.head[end + 4..];
        if head.contains("transfer-encoding: chunked") {
            let mut chunks = Chunks::default();
            chunks.pass(rest)?;
            self.state = State::Chunks(chunks);
            return Ok(());
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.and_then(|length| length.trim().parse::<usize>().ok());
        let left = length.and_then(|length| length.checked_sub(rest.len()));
        let unknown = || io::Error::other("an answer of no known length");
        self.state = State::Body(left.ok_or_else(unknown)?);
        Ok(())
    }
}

impl Chunks {
    fn pass(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(first) = bytes.first() {
            if self.skip > 0 {
                let skipped = self.skip.min(bytes.len());
                (self.skip, bytes) = (self.skip - skipped, &bytes[skipped..]);
                continue;
            }
            let digit = char::from(*first).to_digit(16).filter(|_| !self.is_said);
            match (first, digit) {
                _ if self.is_last => return Err(io::Error::other("more than one answer")),
                (b'\n', _) => {
                    // The line's end behind the content, or behind the last line of all.
                    (self.skip, self.is_last) = (self.size + 2, self.size == 0);
                    (self.size, self.is_said) = (0, false);
                }
                (_, Some(digit)) => self.size = (self.size << 4) + digit as usize,
                (_, None) => self.is_said = true,
            }
            bytes = &bytes[1..];
        }
        Ok(())
    }
}

/// What is answered once.
pub(super) fn fetch(server: &Server, path: &str) -> Result<Vec<u8>, WebError> {
    let fetched = || -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all)?;
        let end = all.windows(4).position(|it| it == b"\r\n\r\n");
        let end = end.ok_or_else(|| io::Error::other("an answer without a head"))?;
        let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
        if !head.starts_with("http/1.1 200") {
            let line = head.lines().next().unwrap_or_default();
            return Err(io::Error::other(format!("answered `{line}` for {path}")));
        }
        let body = all.split_off(end + 4);
        let is_chunked = head.contains("transfer-encoding: chunked");
        if is_chunked {
            joined(&body).ok_or_else(|| io::Error::other("wrong chunks"))
        } else {
            Ok(body)
        }
    };
    fetched().map_err(|error| WebError::system(server.name.clone(), error))
}

/// The content of a body in chunks.
fn joined(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let end = body.windows(2).position(|it| it == b"\r\n")?;
        let size = std::str::from_utf8(&body[..end]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(content);
        }
        content.extend_from_slice(body.get(end + 2..end + 2 + size)?);
        body = body.get(end + 4 + size..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_in_chunks_ends_where_it_ends_however_it_is_cut() {
        let body = b"5;x=abc\r\nhello\r\n1b\r\nabcdefghijklmnopqrstuvwxyz.\r\n0\r\n\r\n";
        assert_eq!(joined(body).map(|it| it.len()), Some(5 + 27));
        for cut in 0..body.len() {
            let mut chunks = Chunks::default();
            chunks.pass(&body[..cut]).expect("its beginning");
            assert!(!(chunks.is_last && chunks.skip == 0), "cut at {cut}");
            chunks.pass(&body[cut..]).expect("the rest");
            assert!(chunks.is_last && chunks.skip == 0, "cut at {cut}");
            assert!(chunks.pass(b"x").is_err(), "what is behind is another answer");
        }
    }
}
