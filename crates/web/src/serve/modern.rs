//! TLS and HTTP/2, by hyper, on a thread beside each worker.

mod exchange;

use super::{
    begun::Begun,
    body::PIECE,
    listener::Listener,
    pace::{Fares, Pace, Paced, Streams, UnderWay},
    share::{Share, Tallies},
    tls::{Acceptor, Shown},
    turns::Turns,
};
use crate::{answer::Responder, http::head::MAX_FIELDS, shared::Shared};
use flask::Sid;
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use std::{
    cell::{Cell, RefCell},
    future::{Future as _, poll_fn},
    io,
    net::IpAddr,
    os::fd::OwnedFd,
    pin::pin,
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Poll,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    task::{LocalSet, spawn_local},
    time::timeout,
};

/// Streams of one connection at a time.
const STREAMS: u32 = 64;
/// Bytes of a request's head.
const HEAD: u32 = 16 << 10;
/// Bytes of bodies that may have come and wait, of one stream and of one connection.
const STREAM_WINDOW: u32 = 64 << 10;
const WINDOW: u32 = 256 << 10;
/// Streams that were reset before they were looked at; beyond, the connection ends.
const RESETS: usize = 20;
/// How often this thread looks whether anything has changed.
const TURN: Duration = Duration::from_millis(250);

/// A connection that a worker has found to speak HTTP/2.
pub(super) struct Handed {
    pub(super) fd: OwnedFd,
    /// What it has sent already.
    pub(super) read: Vec<u8>,
    pub(super) label: Sid,
    pub(super) peer: Option<IpAddr>,
}

/// Where a worker hands connections over.
#[derive(Clone)]
pub(super) struct Handle(Sender<Handed>);

impl Handle {
    /// Without room the connection ends.
    pub(super) fn hand(&self, handed: Handed) {
        let _ = self.0.try_send(handed);
    }
}

/// What the tasks of one thread share.
struct Local {
    shared: Arc<Shared>,
    responder: RefCell<Responder>,
    /// Bytes of replies that are not taken yet.
    replies: RefCell<Tallies>,
    /// Bytes of requests that are not all there yet.
    requests: RefCell<Tallies>,
    open: Cell<usize>,
}

/// Whose requests come by one connection.
struct Client {
    /// Its certificate, where the label is by that.
    shown: Option<Shown>,
    label: Sid,
    peer: Option<IpAddr>,
    pace: Rc<Pace>,
    replies: Arc<Share>,
    requests: Arc<Share>,
    turns: Turns,
}

impl Client {
    /// Whether its label still holds: not where a reload has changed who signs certificates.
    fn is_believed(&self, local: &Local) -> bool {
        self.shown.as_ref().is_none_or(|shown| local.shared.tls.load().believe(shown))
    }
}

/// Starts the thread.
pub(super) fn start(
    shared: &Arc<Shared>,
    index: usize,
    listeners: Vec<Listener>,
) -> io::Result<(Handle, JoinHandle<()>)> {
    let (sender, receiver) = channel(1024);
    let shared = Arc::clone(shared);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let named = thread::Builder::new().name(format!("web h2 {index}"));
    let thread = named.spawn(move || {
        let responder = RefCell::new(Responder::new(&shared, index));
        let (replies, requests, open) = Default::default();
        let local = Rc::new(Local { shared, responder, replies, requests, open });
        LocalSet::new().block_on(&runtime, run(local, receiver, listeners));
    })?;
    Ok((Handle(sender), thread))
}

async fn run(local: Rc<Local>, mut handed: Receiver<Handed>, listeners: Vec<Listener>) {
    let mut accepting = Vec::new();
    for listener in listeners {
        accepting.push(spawn_local(accept(Rc::clone(&local), listener)));
    }
    let mut over = false;
    while !local.shared.ends() {
        match timeout(TURN, handed.recv()).await {
            Ok(Some(handed)) if local.shared.has_room() => {
                drop(spawn_local(take_over(Rc::clone(&local), handed)));
            }
            Ok(None) => over = true,
            _ => {}
        }
        if over {
            tokio::time::sleep(TURN).await;
        }
        let mut responder = local.responder.borrow_mut();
        responder.refresh();
        responder.settle();
    }
    accepting.iter().for_each(tokio::task::JoinHandle::abort);
    let grace = local.responder.borrow().site.config.limits.grace_ms;
    let end = Instant::now() + Duration::from_millis(grace.into());
    while local.open.get() > 0 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    local.responder.borrow_mut().settle();
}

async fn accept(local: Rc<Local>, listener: Listener) {
    let (index, listener) = (listener.index, std::net::TcpListener::from(listener.fd));
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            // Out of descriptors: those that wait have to wait.
            tokio::time::sleep(TURN).await;
            continue;
        };
        let Some(acceptor) = local.shared.tls.load().get(index) else { continue };
        local.responder.borrow().counters().accepted.add(1);
        if !local.shared.has_room() {
            local.responder.borrow().counters().refused.add(1);
            continue;
        }
        let label = local.responder.borrow().site.labels[usize::from(index)];
        let own = Rc::clone(&local);
        spawn_local(secured(own, (index, acceptor), stream, (label, address.ip())));
    }
}

/// Counts a connection for as long as it is open.
struct Open(Rc<Local>);

impl Open {
    fn new(local: &Rc<Local>) -> Self {
        local.open.set(local.open.get() + 1);
        local.responder.borrow().counters().open.set(local.open.get() as u64);
        Self(Rc::clone(local))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.shared.connections.fetch_sub(1, Relaxed);
        if let Ok(responder) = self.0.responder.try_borrow() {
            responder.counters().open.set(self.0.open.get() as u64);
        }
    }
}

async fn secured(
    local: Rc<Local>,
    (index, acceptor): (u16, Acceptor),
    stream: TcpStream,
    (label, peer): (Sid, IpAddr),
) {
    let open = Open::new(&local);
    let _ = stream.set_nodelay(true);
    let time = local.responder.borrow().site.config.limits.request_ms;
    let time = Duration::from_millis(time.into());
    let Ok(Ok(stream)) = timeout(time, acceptor.tls.accept(stream)).await else {
        local.responder.borrow().counters().timeouts.add(1);
        return;
    };
    let label = acceptor.label(stream.get_ref().1).unwrap_or(label);
    // Who has agreed to HTTP/2 says nothing else.
    let modern = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let shown = acceptor.shown(index, stream.get_ref().1);
    serve(&local, stream, (label, Some(peer), shown), modern).await;
    drop(open);
}

async fn take_over(local: Rc<Local>, handed: Handed) {
    let open = Open::new(&local);
    let Ok(stream) = TcpStream::from_std(handed.fd.into()) else { return };
    let stream = Begun { read: handed.read, at: 0, stream };
    serve(&local, stream, (handed.label, handed.peer, None), true).await;
    drop(open);
}

async fn serve<S>(
    local: &Rc<Local>,
    stream: S,
    (label, peer, shown): (Sid, Option<IpAddr>, Option<Shown>),
    modern: bool,
) where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let limits = local.responder.borrow().site.config.limits;
    let (pace, own) = (Pace::new(), Rc::clone(local));
    let builder = Builder::new(Streams(Rc::clone(&pace)));
    let mut builder = if modern { builder.http2_only() } else { builder };
    let time = Duration::from_millis(limits.request_ms.into());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(time)
        .max_headers(MAX_FIELDS)
        .max_buf_size(64 << 10);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(PIECE as usize)
        .max_header_list_size(HEAD)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(RESETS)
        .keep_alive_interval(Some(Duration::from_millis(limits.idle_ms.max(1000).into())))
        .keep_alive_timeout(Duration::from_secs(10));
    let stream = Paced { stream, pace: Rc::clone(&pace) };
    let replies = local.replies.borrow_mut().share(peer);
    let requests = local.requests.borrow_mut().share(peer);
    let turns = Turns::new();
    let pace_of_client = Rc::clone(&pace);
    let client = Client { shown, label, peer, pace: pace_of_client, replies, requests, turns };
    let client = Rc::new(client);
    let whose = Rc::clone(&client);
    let service = service_fn(move |request| {
        let under_way = UnderWay::new(&client.pace);
        exchange::answer(Rc::clone(&own), Rc::clone(&client), under_way, request)
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut told = false;
    let mut looking = pin!(tokio::time::sleep(TURN));
    poll_fn(|context| {
        if looking.as_mut().poll(context).is_ready() {
            let fares = pace.fares(&limits);
            if fares == Fares::Stuck || fares == Fares::Idle && told {
                local.responder.borrow().counters().timeouts.add(u64::from(fares == Fares::Stuck));
                return Poll::Ready(());
            }
            let is_over = local.shared.ends() || fares == Fares::Idle || !whose.is_believed(local);
            if is_over && !told {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            looking.as_mut().reset(tokio::time::Instant::now() + TURN);
            let _ = looking.as_mut().poll(context);
        }
        connection.as_mut().poll(context).map(drop)
    })
    .await;
}
