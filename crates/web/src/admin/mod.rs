//! Administration: HTTP on a unix socket for who owns it, and a page and metrics that change
//! nothing for others.

mod metrics;
mod reply;
mod routes;
mod status;

use crate::{
    error::ServerError,
    http::head::{self, Head, Length, MAX_FIELDS, MAX_HEAD},
    serve::{unix_listener, with_form},
    shared::Shared,
};
use httparse::EMPTY_HEADER;
use ipc::peer_user;
use reply::Reply;
use rustix::{
    fs::Mode,
    net::{Shutdown, shutdown},
    process::{Uid, getuid},
};
use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpListener},
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Bytes of what is sent: plugins.
const MAX_BODY: u64 = 16 << 20;
/// Connections at a time.
const MAX_OPEN: usize = 16;
/// Time for each piece of a request, and for all of them.
const TIME: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(10);
/// How often it looks whether the server ends.
const TURN: Duration = Duration::from_millis(100);

/// What was started.
#[derive(Default)]
pub(crate) struct Admin {
    pub(crate) threads: Vec<JoinHandle<()>>,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) status: Option<SocketAddr>,
}

/// Who may do what by a socket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Everything, for the server's own user and root.
    Owner,
    /// Looking.
    Anybody,
}

pub(crate) fn start(shared: &Arc<Shared>) -> Result<Admin, ServerError> {
    let (site, mut admin) = (shared.site.load_full(), Admin::default());
    if let Some(path) = &site.config.admin {
        let path = site.config.path(path);
        let cannot = |error| {
            let directory = path.parent().filter(|it| !it.as_os_str().is_empty() && !it.exists());
            let missing =
                directory.map(|it| format!(": its directory `{}` is missing", it.display()));
            let what = format!("cannot be administered at `{}`", path.display());
            ServerError::system(what + &missing.unwrap_or_default(), error)
        };
        let listener = unix_listener(&path, Some(Mode::RUSR | Mode::WUSR)).map_err(cannot)?;
        admin.socket = Some(path.clone());
        let accept = move || listener.accept().map(|(stream, _)| stream);
        admin.threads.push(serve(shared, Access::Owner, accept).map_err(cannot)?);
    }
    if let Some(address) = &site.config.status {
        let cannot =
            |error| ServerError::system(format!("cannot show the status at `{address}`"), error);
        let listener =
            TcpListener::bind(address).map_err(|error| cannot(with_form(error, "ADDRESS:PORT")))?;
        listener.set_nonblocking(true).map_err(cannot)?;
        admin.status = listener.local_addr().ok();
        let accept = move || listener.accept().map(|(stream, _)| stream);
        admin.threads.push(serve(shared, Access::Anybody, accept).map_err(cannot)?);
    }
    Ok(admin)
}

/// A connection of either kind.
trait Stream: Read + Write + AsFd + Send + 'static {
    /// Blocks, but not for ever.
    fn set_up(&self) -> io::Result<()>;
}

impl Stream for std::os::unix::net::UnixStream {
    fn set_up(&self) -> io::Result<()> {
        self.set_nonblocking(false)?;
        self.set_read_timeout(Some(TIME))?;
        self.set_write_timeout(Some(TIME))
    }
}

impl Stream for std::net::TcpStream {
    fn set_up(&self) -> io::Result<()> {
        self.set_nonblocking(false)?;
        self.set_read_timeout(Some(TIME))?;
        self.set_write_timeout(Some(TIME))
    }
}

/// An open connection, as the thread that takes others sees it.
struct Open {
    socket: OwnedFd,
    /// All of its request has come.
    has_asked: AtomicBool,
}

impl Open {
    /// One more among `all`. When there are too many, the oldest that has not asked is let go of;
    /// `None` when all have.
    fn among(all: &mut Vec<Weak<Self>>, stream: &impl AsFd) -> Option<Arc<Self>> {
        let socket = stream.as_fd().try_clone_to_owned().ok()?;
        all.retain(|open| open.strong_count() > 0);
        if all.len() >= MAX_OPEN {
            let is_silent = |open: &Weak<Self>| {
                open.upgrade().is_some_and(|open| !open.has_asked.load(Relaxed))
            };
            let oldest = all.remove(all.iter().position(is_silent)?);
            if let Some(oldest) = oldest.upgrade() {
                // Its thread finds the end of what was sent.
                let _ = shutdown(&oldest.socket, Shutdown::Both);
            }
        }
        let open = Arc::new(Self { socket, has_asked: AtomicBool::new(false) });
        all.push(Arc::downgrade(&open));
        Some(open)
    }
}

fn serve<S: Stream>(
    shared: &Arc<Shared>,
    access: Access,
    accept: impl Fn() -> io::Result<S> + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (shared, mut all) = (Arc::clone(shared), Vec::new());
    thread::Builder::new().name("web admin".to_owned()).spawn(move || {
        while !shared.ends() {
            match accept() {
                Ok(stream) => {
                    let Some(open) = Open::among(&mut all, &stream) else { continue };
                    let shared = Arc::clone(&shared);
                    // Without a thread it ends, and so does one whose client goes away.
                    let _ = thread::Builder::new().spawn(move || {
                        let _ = connection(&shared, access, &open, stream);
                    });
                }
                Err(_) => thread::sleep(TURN),
            }
        }
    })
}

fn connection(
    shared: &Shared,
    access: Access,
    open: &Open,
    mut stream: impl Stream,
) -> io::Result<()> {
    stream.set_up()?;
    if access == Access::Owner {
        let peer = Uid::from_raw(peer_user(stream.as_fd())?);
        if peer != getuid() && !peer.is_root() {
            return answer(&mut stream, &Reply::text(403, "only the server's own user and root\n"));
        }
    }
    // Who only looks sends nothing but a head.
    let most = if access == Access::Owner { MAX_BODY } else { 0 };
    let (mut input, begun) = (Vec::new(), Instant::now());
    let reply = loop {
        let mut room = [EMPTY_HEADER; MAX_FIELDS];
        match head::parse(&input, &mut room) {
            Err(refusal) => break Reply::text(refusal.status, format!("{}\n", refusal.why)),
            Ok(Some(head)) => {
                let (len, body) = (head.len, head.body);
                let body = match body {
                    Length::Known(length) if length <= most => length as usize,
                    _ => break Reply::text(413, "too long, or of no known length\n"),
                };
                if input.len() >= len + body {
                    break reply(shared, access, &head, &input[len..len + body]);
                }
            }
            Ok(None) if input.len() > MAX_HEAD => break Reply::text(431, "too long\n"),
            Ok(None) => {}
        }
        if begun.elapsed() > WHOLE {
            return Ok(());
        }
        let mut piece = [0; 16 << 10];
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            count => input.extend_from_slice(&piece[..count]),
        }
    };
    open.has_asked.store(true, Relaxed);
    answer(&mut stream, &reply)
}

fn reply(shared: &Shared, access: Access, head: &Head<'_, '_>, body: &[u8]) -> Reply {
    let host = head::field(head.fields, "host").unwrap_or_default();
    if access == Access::Anybody && !is_plain_host(host) {
        // Another site's page must not read this one by a name that leads here.
        return Reply::text(403, "ask by address, or as localhost\n");
    }
    match head.method {
        "GET" => routes::get(shared, head.target),
        _ if access == Access::Anybody => Reply::text(405, "this only shows\n"),
        method => routes::change(shared, method, head.target, body),
    }
}

fn is_plain_host(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn answer(stream: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let Reply { status, media, body } = reply;
    let reason = crate::http::reason(*status);
    let text = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {media}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'self' 'unsafe-inline'\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes())
}
