//! What a client of hyper's keeps to: it takes what it is sent, and asks for something now and
//! then. hyper itself waits for ever, and a client can answer all its pings.

use crate::config::Bounds;
use std::{
    cell::Cell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Who takes so much gets time anew.
const PROGRESS: usize = 16 << 10;

/// How a connection fares.
pub(super) struct Pace {
    /// Requests that are not wholly answered.
    under_way: Cell<usize>,
    /// Bytes written since then.
    written: Cell<usize>,
    /// The last time that it came on.
    since: Cell<Instant>,
    /// The last byte read, and whether a line feed came without a carriage return before it.
    last: Cell<u8>,
    has_bare_line_feed: Cell<bool>,
}

/// Counts a request until its answer has gone.
pub(super) struct UnderWay(Rc<Pace>);

/// What is to be done with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fares {
    Well,
    /// It has asked for nothing for long.
    Idle,
    /// It takes nothing, or does not send what it has begun.
    Stuck,
}

impl Pace {
    pub(super) fn new() -> Rc<Self> {
        let since = Cell::new(Instant::now());
        let (under_way, written) = (Cell::new(0), Cell::new(0));
        Rc::new(Self {
            under_way,
            written,
            since,
            last: Cell::default(),
            has_bare_line_feed: Cell::default(),
        })
    }

    fn note(&self, read: &[u8]) {
        let before = std::iter::once(self.last.get()).chain(read.iter().copied());
        let mut pairs = before.zip(read);
        if pairs.any(|(before, byte)| *byte == b'\n' && before != b'\r') {
            self.has_bare_line_feed.set(true);
        }
        self.last.set(read.last().copied().unwrap_or(self.last.get()));
    }

    fn come_on(&self) {
        self.since.set(Instant::now());
        self.written.set(0);
    }

    pub(super) fn fares(&self, limits: &Bounds) -> Fares {
        let is_over = |ms: u32| self.since.get().elapsed() > Duration::from_millis(ms.into());
        match self.under_way.get() {
            0 if is_over(limits.idle_ms) => Fares::Idle,
            1.. if is_over(limits.send_ms.max(limits.request_ms)) => Fares::Stuck,
            _ => Fares::Well,
        }
    }
}

impl UnderWay {
    pub(super) fn new(pace: &Rc<Pace>) -> Self {
        pace.come_on();
        pace.under_way.set(pace.under_way.get() + 1);
        Self(Rc::clone(pace))
    }

    /// Whether a line feed stood for itself in what was read so far. hyper takes it for the end of
    /// a line, another party may not. In a body it means nothing, which is not told apart.
    pub(super) fn has_bare_line_feed(&self) -> bool {
        self.0.has_bare_line_feed.get()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.come_on();
        self.0.under_way.set(self.0.under_way.get() - 1);
    }
}

/// A stream whose pace is known.
pub(super) struct Paced<S> {
    pub(super) stream: S,
    pub(super) pace: Rc<Pace>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let begun = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if !self.pace.has_bare_line_feed.get() {
            self.pace.note(&into.filled()[begun..]);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = written {
            self.pace.written.set(self.pace.written.get() + count);
            if self.pace.written.get() >= PROGRESS {
                self.pace.come_on();
            }
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
