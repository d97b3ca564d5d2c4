//! The body of an answer, as hyper takes it.

use super::pace::UnderWay;
use crate::files::Served;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::{
    io,
    os::unix::fs::FileExt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

/// Bytes of a file that are read at a time.
pub(super) const PIECE: u64 = 64 << 10;
/// Bytes of answers that may wait, of one thread.
pub(super) const BUFFERED: usize = 128 << 20;

/// Bytes that wait, all together.
pub(super) type Tally = Arc<AtomicUsize>;

/// Content that is on its way.
pub(super) struct Content {
    rest: Rest,
    /// What ends with it.
    kept: (Option<Waiting>, Option<UnderWay>),
}

enum Rest {
    Bytes(Bytes),
    File(Arc<Served>, u64, u64, Tally),
}

/// A part of a file, counted until it has gone.
struct Piece {
    bytes: Vec<u8>,
    _waiting: Waiting,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Content {
    pub(super) fn bytes(bytes: Bytes, waiting: Waiting) -> Self {
        Self { rest: Rest::Bytes(bytes), kept: (Some(waiting), None) }
    }

    /// From the first byte up to and without the second; pieces that wait are counted in `all`.
    pub(super) fn file(file: Arc<Served>, (from, to): (u64, u64), all: &Tally) -> Self {
        Self { rest: Rest::File(file, from, to, Arc::clone(all)), kept: (None, None) }
    }

    /// Its request is under way until it has gone.
    pub(super) fn until_gone(&mut self, under_way: UnderWay) {
        self.kept.1 = Some(under_way);
    }
}

/// Counts bytes for as long as they wait.
pub(super) struct Waiting {
    all: Tally,
    own: usize,
}

impl Waiting {
    pub(super) fn new(all: &Tally, own: usize) -> Self {
        all.fetch_add(own, Relaxed);
        Self { all: Arc::clone(all), own }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Relaxed);
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(match &mut self.rest {
            Rest::Bytes(bytes) if bytes.is_empty() => None,
            Rest::Bytes(bytes) => Some(Ok(Frame::data(std::mem::take(bytes)))),
            Rest::File(_, from, to, _) if from == to => None,
            // Those who take nothing must not make it wait without end.
            Rest::File(.., all) if all.load(Relaxed) > BUFFERED => {
                Some(Err(io::ErrorKind::OutOfMemory.into()))
            }
            Rest::File(file, from, to, all) => {
                let mut piece = vec![0; (*to - *from).min(PIECE) as usize];
                let read = file.file.read_exact_at(&mut piece, *from);
                *from += piece.len() as u64;
                let piece = Piece { _waiting: Waiting::new(all, piece.len()), bytes: piece };
                Some(read.map(|()| Frame::data(Bytes::from_owner(piece))))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.rest {
            Rest::Bytes(bytes) => bytes.is_empty(),
            Rest::File(_, from, to, _) => from == to,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match &self.rest {
            Rest::Bytes(bytes) => bytes.len() as u64,
            Rest::File(_, from, to, _) => to - from,
        })
    }
}

/// Waits for the end of a body that nobody wants, at most as long as bodies may be.
pub(super) async fn pass_over(mut body: Incoming, most: usize) -> Result<(), hyper::Error> {
    let mut passed = 0;
    while let Some(frame) = body.frame().await {
        passed += frame?.data_ref().map_or(0, Bytes::len);
        if passed > most {
            break;
        }
    }
    Ok(())
}
