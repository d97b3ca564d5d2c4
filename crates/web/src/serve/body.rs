//! The body of an answer, as hyper takes it.

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
pub(super) enum Content {
    Bytes(Option<Bytes>, #[expect(dead_code, reason = "counts until its end")] Waiting),
    File(Arc<Served>, u64, u64),
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
        Poll::Ready(match &mut *self {
            Self::Bytes(bytes, _) => bytes.take().map(|bytes| Ok(Frame::data(bytes))),
            Self::File(_, from, to) if from == to => None,
            Self::File(file, from, to) => {
                let mut piece = vec![0; (*to - *from).min(PIECE) as usize];
                let read = file.file.read_exact_at(&mut piece, *from);
                *from += piece.len() as u64;
                Some(read.map(|()| Frame::data(piece.into())))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Bytes(bytes, _) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::File(_, from, to) => from == to,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Bytes(bytes, _) => bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Self::File(_, from, to) => to - from,
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
