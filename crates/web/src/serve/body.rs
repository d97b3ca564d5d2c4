//! The body of an answer, as hyper takes it.

use super::pace::UnderWay;
use crate::files::Served;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::{
    cell::Cell,
    io,
    os::unix::fs::FileExt,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
};

/// Bytes of a file that are read at a time.
const PIECE: u64 = 64 << 10;

/// Content that is on its way.
pub(super) struct Content {
    rest: Rest,
    /// What ends with it.
    kept: (Option<Waiting>, Option<UnderWay>),
}

enum Rest {
    Bytes(Bytes),
    File(Arc<Served>, u64, u64),
}

impl Content {
    pub(super) fn bytes(bytes: Bytes, waiting: Waiting) -> Self {
        Self { rest: Rest::Bytes(bytes), kept: (Some(waiting), None) }
    }

    /// From the first byte up to and without the second.
    pub(super) fn file(file: Arc<Served>, from: u64, to: u64) -> Self {
        Self { rest: Rest::File(file, from, to), kept: (None, None) }
    }

    /// Its request is under way until it has gone.
    pub(super) fn until_gone(&mut self, under_way: UnderWay) {
        self.kept.1 = Some(under_way);
    }
}

/// Counts bytes for as long as they wait.
pub(super) struct Waiting {
    all: Rc<Cell<usize>>,
    own: usize,
}

impl Waiting {
    pub(super) fn new(all: &Rc<Cell<usize>>, own: usize) -> Self {
        all.set(all.get() + own);
        Self { all: Rc::clone(all), own }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.all.set(self.all.get().saturating_sub(self.own));
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
            Rest::File(_, from, to) if from == to => None,
            Rest::File(file, from, to) => {
                let mut piece = vec![0; (*to - *from).min(PIECE) as usize];
                let read = file.file.read_exact_at(&mut piece, *from);
                *from += piece.len() as u64;
                Some(read.map(|()| Frame::data(piece.into())))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.rest {
            Rest::Bytes(bytes) => bytes.is_empty(),
            Rest::File(_, from, to) => from == to,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match &self.rest {
            Rest::Bytes(bytes) => bytes.len() as u64,
            Rest::File(_, from, to) => to - from,
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
