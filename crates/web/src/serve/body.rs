//! The body of an answer, as hyper takes it.

use super::{
    pace::UnderWay,
    share::{Share, Waiting},
};
use crate::{config::Bounds, files::Served};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::{
    future::Future as _,
    io,
    os::unix::fs::FileExt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// Bytes of an answer that are handed over at a time.
pub(super) const PIECE: u64 = 64 << 10;
/// Bytes of answers that may wait, of one thread.
pub(super) const BUFFERED: usize = 128 << 20;
/// How often who waits for room looks whether there is some.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// Content that is on its way.
pub(super) struct Content {
    rest: Rest,
    share: Arc<Share>,
    room: Option<Pin<Box<Sleep>>>,
    /// Its request is under way until it has gone.
    under_way: Option<UnderWay>,
}

enum Rest {
    Bytes(Bytes),
    /// From the first byte up to and without the second.
    File(Arc<Served>, u64, u64),
}

/// Bytes that are counted until they have gone.
struct Counted<B> {
    bytes: B,
    _waiting: Waiting,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Counted<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

fn counted(share: &Arc<Share>, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
    let waiting = Waiting::new(share, bytes.as_ref().len());
    Bytes::from_owner(Counted { bytes, _waiting: waiting })
}

impl Content {
    fn new(rest: Rest, share: &Arc<Share>) -> Self {
        Self { rest, share: Arc::clone(share), room: None, under_way: None }
    }

    /// Bytes that are there anyway.
    pub(super) fn shared(bytes: Bytes, share: &Arc<Share>) -> Self {
        Self::new(Rest::Bytes(bytes), share)
    }

    /// Bytes that are kept for this answer alone.
    pub(super) fn own(bytes: impl AsRef<[u8]> + Send + 'static, share: &Arc<Share>) -> Self {
        Self::new(Rest::Bytes(counted(share, bytes)), share)
    }

    /// From the first byte up to and without the second.
    pub(super) fn file(file: Arc<Served>, (from, to): (u64, u64), share: &Arc<Share>) -> Self {
        Self::new(Rest::File(file, from, to), share)
    }

    pub(super) fn until_gone(&mut self, under_way: UnderWay) {
        self.under_way = Some(under_way);
    }

    /// Waits while more waits than should. One piece may always.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while !self.share.is_empty() && self.share.is_over(BUFFERED, 0) {
            if let Some(under_way) = &self.under_way {
                under_way.waits();
            }
            let room = self.room.get_or_insert_with(|| Box::pin(sleep(LOOK)));
            ready!(room.as_mut().poll(context));
            self.room = None;
        }
        Poll::Ready(())
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        if matches!(self.rest, Rest::File(..)) {
            ready!(self.poll_room(context));
        }
        let this = &mut *self;
        let piece = match &mut this.rest {
            Rest::Bytes(bytes) => Ok(bytes.split_to(bytes.len().min(PIECE as usize))),
            Rest::File(file, from, to) => {
                let mut piece = vec![0; (*to - *from).min(PIECE) as usize];
                let read = file.file.read_exact_at(&mut piece, *from);
                *from += piece.len() as u64;
                read.map(|()| counted(&this.share, piece))
            }
        };
        if let Some(under_way) = &this.under_way {
            under_way.takes();
        }
        Poll::Ready(Some(piece.map(Frame::data)))
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

/// All of a body, or the status that refuses it.
pub(super) async fn collect(
    mut body: Incoming,
    coming: &mut Waiting,
    limits: &Bounds,
) -> Result<Result<Vec<u8>, u16>, hyper::Error> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        if all.len() + piece.len() > limits.body_bytes {
            return Ok(Err(413));
        }
        coming.grow(piece.len());
        if coming.share.is_over(limits.waiting_bytes, limits.body_bytes) {
            return Ok(Err(503));
        }
        all.extend_from_slice(&piece);
    }
    Ok(Ok(all))
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
