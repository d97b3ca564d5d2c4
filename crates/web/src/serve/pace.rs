//! What a client of hyper's keeps to: it takes what it is sent, and asks for something now and
//! then. hyper itself waits for ever, and a client can answer all its pings.

use super::body::PIECE;
use crate::config::Bounds;
use hyper::rt::Executor;
use std::{
    cell::{Cell, OnceCell, RefCell},
    future::Future,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::{AbortHandle, spawn_local},
};

/// Who takes so much gets time anew.
const PROGRESS: u64 = 16 << 10;

/// How a connection fares.
pub(super) struct Pace {
    /// Requests that are not wholly answered.
    under_way: RefCell<Vec<Rc<Stream>>>,
    /// Bytes written in all.
    written: Cell<u64>,
    /// The last time that it came on, and how many bytes were written then.
    since: Cell<Since>,
    /// The last byte read, and whether a line feed came without a carriage return before it.
    last: Cell<u8>,
    has_bare_line_feed: Cell<bool>,
}

/// A moment, and how many bytes a connection was sent by then.
type Since = (Instant, u64);

/// A request and its answer.
#[derive(Default)]
struct Stream {
    /// When a piece of its answer was taken last, unless it waits for the next.
    took: Cell<Option<Since>>,
    /// What carries it out.
    task: OnceCell<AbortHandle>,
}

/// Counts a request until its answer has gone.
pub(super) struct UnderWay(Rc<Pace>, Rc<Stream>);

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
        Rc::new(Self {
            under_way: RefCell::default(),
            written: Cell::default(),
            since: Cell::new((Instant::now(), 0)),
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

    fn now(&self) -> Since {
        (Instant::now(), self.written.get())
    }

    /// How it fares. Streams of which nothing is taken are reset.
    pub(super) fn fares(&self, limits: &Bounds) -> Fares {
        let (since, _) = self.since.get();
        let is_over = |ms: u32| since.elapsed() > Duration::from_millis(ms.into());
        let (under_way, time) = (self.under_way.borrow(), limits.send_ms.max(limits.request_ms));
        let is_left = |took| self.is_left(took, under_way.len() as u64, time);
        for stream in under_way.iter().filter(|stream| stream.took.get().is_some_and(is_left)) {
            if let Some(task) = stream.task.get() {
                task.abort();
            }
        }
        match under_way.len() {
            0 if is_over(limits.idle_ms) => Fares::Idle,
            1.. if is_over(time) => Fares::Stuck,
            _ => Fares::Well,
        }
    }

    /// Whether one of `count` streams was left: nothing of it was taken since then, and not because
    /// a slow client takes from all of them in turn.
    fn is_left(&self, (since, before): Since, count: u64, ms: u32) -> bool {
        let (waited, taken) = (since.elapsed().as_millis() as u64, self.written.get() - before);
        let (ms, in_turn) = (u64::from(ms), 2 * count * PIECE);
        waited > ms && (taken * ms < PROGRESS * waited || taken > in_turn)
    }
}

impl UnderWay {
    pub(super) fn new(pace: &Rc<Pace>) -> Self {
        pace.since.set(pace.now());
        let stream = Rc::<Stream>::default();
        pace.under_way.borrow_mut().push(Rc::clone(&stream));
        Self(Rc::clone(pace), stream)
    }

    /// The next piece of its answer is taken.
    pub(super) fn takes(&self) {
        self.1.took.set(Some(self.0.now()));
    }

    /// There is no next piece yet, which is not its client's fault.
    pub(super) fn waits(&self) {
        self.1.took.set(None);
    }

    /// Whether a line feed stood for itself in what was read so far. hyper takes it for the end of
    /// a line, another party may not. In a body it means nothing, which is not told apart.
    pub(super) fn has_bare_line_feed(&self) -> bool {
        self.0.has_bare_line_feed.get()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.since.set(self.0.now());
        self.0.under_way.borrow_mut().retain(|stream| !Rc::ptr_eq(stream, &self.1));
    }
}

/// Runs the streams of a connection on this thread. hyper hands each over when it has begun.
#[derive(Clone)]
pub(super) struct Streams(pub(super) Rc<Pace>);

impl<F: Future + 'static> Executor<F> for Streams {
    fn execute(&self, future: F) {
        let task = spawn_local(async move {
            future.await;
        });
        if let Some(stream) = self.0.under_way.borrow().last() {
            // The first task of a stream is its only one.
            let _ = stream.task.set(task.abort_handle());
        }
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
            let (written, (_, before)) =
                (self.pace.written.get() + count as u64, self.pace.since.get());
            self.pace.written.set(written);
            if written - before >= PROGRESS {
                self.pace.since.set(self.pace.now());
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
