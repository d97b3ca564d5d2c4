//! TLS and HTTP/2, by hyper, on a thread beside each worker.

use super::{
    Listener,
    begun::Begun,
    body::{BUFFERED, Content, PIECE, Tally, Waiting, pass_over},
    head::{bytes_of, has_wrong_host, may_be_read_otherwise},
    pace::{Fares, Pace, Paced, UnderWay},
    tls::Acceptor,
};
use crate::{
    answer::{Answer, Ask, Body, Record, Responder},
    http::head::MAX_FIELDS,
    server::Shared,
};
use bytes::Bytes;
use flask::Sid;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use httparse::{EMPTY_HEADER, Header, Status};
use hyper::{
    Request, Response,
    body::{Body as _, Incoming},
    rt::Executor,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
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
    waiting: Tally,
    /// Bytes of requests that may still come.
    incoming: Tally,
    open: Cell<usize>,
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
        let (waiting, incoming, open) = (Tally::default(), Tally::default(), Cell::new(0));
        let local = Rc::new(Local { shared, responder, waiting, incoming, open });
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
        spawn_local(secured(own, acceptor, stream, (label, address.ip())));
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
    acceptor: Acceptor,
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
    serve(&local, stream, (label, Some(peer)), modern).await;
    drop(open);
}

async fn take_over(local: Rc<Local>, handed: Handed) {
    let open = Open::new(&local);
    let Ok(stream) = TcpStream::from_std(handed.fd.into()) else { return };
    let stream = Begun { read: handed.read, at: 0, stream };
    serve(&local, stream, (handed.label, handed.peer), true).await;
    drop(open);
}

async fn serve<S>(local: &Rc<Local>, stream: S, (label, peer): (Sid, Option<IpAddr>), modern: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let limits = local.responder.borrow().site.config.limits;
    let builder = Builder::new(Here);
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
    let (own, pace) = (Rc::clone(local), Pace::new());
    let stream = Paced { stream, pace: Rc::clone(&pace) };
    let paced = Rc::clone(&pace);
    let service = service_fn(move |request| {
        answer(Rc::clone(&own), UnderWay::new(&paced), request, (label, peer))
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
            if (local.shared.ends() || fares == Fares::Idle) && !told {
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

async fn answer(
    local: Rc<Local>,
    under_way: UnderWay,
    request: Request<Incoming>,
    (label, peer): (Sid, Option<IpAddr>),
) -> Result<Response<Content>, io::Error> {
    let begun = Instant::now();
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let limits = local.responder.borrow().site.config.limits;
    let wanted = local.responder.borrow().wants_body(target);
    let time = Duration::from_millis(limits.request_ms.into());
    // What may come is counted before it does, and what has come of its head with it.
    let most = body.size_hint().upper().map_or(limits.body_bytes, |most| most as usize);
    let most = if wanted { most.min(limits.body_bytes) } else { 0 };
    let coming = Waiting::new(&local.incoming, most + bytes_of(&parts));
    let body = if has_wrong_host(&parts) {
        Err(400)
    } else if local.incoming.load(Relaxed) > limits.waiting_bytes {
        Err(503)
    } else if wanted {
        match timeout(time, Limited::new(body, limits.body_bytes).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(413),
            // It is not what its head says: hyper ends the stream, or the connection.
            Ok(Err(error)) => return Err(io::Error::other(error)),
            Err(_) => Err(408),
        }
    } else {
        if parts.version == http::Version::HTTP_2
            && let Ok(passed) = timeout(time, pass_over(body, limits.body_bytes)).await
        {
            passed.map_err(io::Error::other)?;
        }
        Ok(Bytes::new())
    };
    let mut fields = Vec::with_capacity(parts.headers.len() + 1);
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    if let Some(host) = authority.filter(|_| !parts.headers.contains_key("host")) {
        fields.push(Header { name: "host", value: host.as_bytes() });
    }
    for (name, value) in &parts.headers {
        fields.push(Header { name: name.as_str(), value: value.as_bytes() });
    }
    let version = if parts.version == http::Version::HTTP_2 { "HTTP/2.0" } else { "HTTP/1.1" };
    let (body, refused) = match body {
        Ok(body) => (body, None),
        Err(status) => (Bytes::new(), Some(status)),
    };
    let method = parts.method.as_str();
    let ask = Ask { method, target, fields: &fields, body: &body, label, peer, version };
    let mut responder = local.responder.borrow_mut();
    responder.refresh();
    let crowded = local.waiting.load(Relaxed) > BUFFERED;
    let answer = match refused.or(crowded.then_some(503)) {
        Some(status) => responder.refusal(crate::http::head::refuse(status, "")),
        None => responder.respond(&ask),
    };
    drop(coming);
    let mut response = response(&local, &mut responder, &ask, (answer, begun));
    if may_be_read_otherwise(&parts, under_way.has_bare_line_feed()) {
        let close = http::HeaderValue::from_static("close");
        response.headers_mut().insert("connection", close);
    }
    response.body_mut().until_gone(under_way);
    Ok(response)
}

/// An answer, as hyper takes it.
fn response(
    local: &Local,
    responder: &mut Responder,
    ask: &Ask<'_>,
    (answer, begun): (Answer, Instant),
) -> Response<Content> {
    let Answer { status, body, len, plugin } = answer;
    let content = match body {
        Body::Empty => Content::bytes(Bytes::new(), Waiting::new(&local.waiting, 0)),
        Body::Bytes(bytes) => {
            // Files' content is there anyway; what plugins reply is not.
            let own = if plugin.is_some() { bytes.len() } else { 0 };
            Content::bytes(bytes, Waiting::new(&local.waiting, own))
        }
        Body::File(file, from, to) => Content::file(file, (from, to), &local.waiting),
        Body::Reply(mut lease, len) => {
            let bytes = Bytes::copy_from_slice(lease.session.reply(len));
            responder.pool.give_back(lease);
            let waiting = Waiting::new(&local.waiting, bytes.len());
            Content::bytes(bytes, waiting)
        }
    };
    let mut response = Response::new(content);
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert("server", http::HeaderValue::from_static("dewar"));
    if ask.method == "HEAD" && status != 304 && status != 204 {
        headers.insert("content-length", len.into());
    }
    let mut text = responder.fields.clone();
    text.extend_from_slice(b"\r\n");
    let mut room = [EMPTY_HEADER; MAX_FIELDS];
    if let Ok(Status::Complete((_, fields))) = httparse::parse_headers(&text, &mut room) {
        for field in fields {
            let name = http::HeaderName::from_bytes(field.name.as_bytes());
            let value = http::HeaderValue::from_bytes(field.value);
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
    }
    let bytes = if ask.method == "HEAD" { 0 } else { len };
    let us = begun.elapsed().as_micros() as u64;
    let plugin = plugin.as_ref().map(|binding| binding.name.as_str());
    responder.done(ask, Record { status, bytes, us, plugin });
    response
}

/// Runs hyper's tasks on this thread.
#[derive(Clone, Copy)]
struct Here;

impl<F: Future + 'static> Executor<F> for Here {
    fn execute(&self, future: F) {
        spawn_local(async move {
            future.await;
        });
    }
}
