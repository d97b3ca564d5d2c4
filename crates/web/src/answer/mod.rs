//! From a request to its answer, the same for every way that requests come.

mod handler;
mod heads;
mod plain;
mod resolve;
mod transform;

use crate::{
    clock::Dates,
    config::Kind,
    counters::Counters,
    files::Served,
    http::{head::Refusal, reason},
    log::{Line, Log, number},
    plugins::{Binding, Bindings},
    pool::{Lease, Pool},
    shared::{Shared, Site},
};
use bytes::Bytes;
use flask::Sid;
use foldhash::HashMap;
use httparse::Header;
use resolve::Known;
use std::{net::IpAddr, sync::Arc};

/// What is asked.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) fields: &'a [Header<'a>],
    pub(crate) body: &'a [u8],
    /// The label of the request.
    pub(crate) label: Sid,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) version: &'static str,
}

impl Ask<'_> {
    fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

/// What is answered; its header fields are the responder's, until the next.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Body,
    /// Of an answer to HEAD, how long its body would be.
    pub(crate) len: u64,
    pub(crate) plugin: Option<Arc<Binding>>,
    /// Where the file or directory lies beneath ROOT that it shows, if plugins see its head.
    lies: Option<Arc<[u8]>>,
}

/// What comes behind the head.
pub(crate) enum Body {
    Empty,
    /// Content that is there anyway.
    Bytes(Bytes),
    /// What was made for this answer alone.
    Own(Bytes),
    /// From the first byte up to and without the second.
    File(Arc<Served>, u64, u64),
    /// So many bytes of a plugin's reply, where it lies.
    Reply(Lease, usize),
}

/// A status without content.
#[derive(Clone, Copy, Debug)]
struct Failure(u16);

impl Answer {
    fn new(status: u16, body: Body) -> Self {
        let len = match &body {
            Body::Empty => 0,
            Body::Bytes(bytes) | Body::Own(bytes) => bytes.len() as u64,
            Body::File(_, from, to) => to - from,
            Body::Reply(_, len) => *len as u64,
        };
        Self { status, body, len, plugin: None, lies: None }
    }

    /// Whether this answer may say how long it is.
    pub(crate) fn has_length(&self) -> bool {
        self.status != 304 && self.status != 204
    }
}

/// One worker's way to answers.
pub(crate) struct Responder {
    pub(crate) shared: Arc<Shared>,
    pub(crate) site: Arc<Site>,
    bindings: Arc<Bindings>,
    /// Of the site, and of the bindings.
    generation: (u64, u64),
    known: HashMap<Box<[u8]>, Known>,
    pub(crate) pool: Pool,
    pub(crate) log: Log,
    pub(crate) dates: Dates,
    /// Which worker this is.
    index: usize,
    /// The header fields of the last answer, each with the end of its line.
    pub(crate) fields: Vec<u8>,
    /// Whether what is made for an answer alone could be kept until its client takes it; else the
    /// answer is 503.
    pub(crate) has_room: bool,
}

impl Responder {
    pub(crate) fn new(shared: &Arc<Shared>, index: usize) -> Self {
        let site = shared.site.load_full();
        let log = Log::new(site.log.clone());
        let pool = Pool::new(shared.counters.len());
        Self {
            shared: Arc::clone(shared),
            site,
            bindings: Arc::default(),
            generation: (0, 0),
            known: HashMap::default(),
            pool,
            log,
            dates: Dates::default(),
            index,
            fields: Vec::with_capacity(1024),
            has_room: true,
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters[self.index]
    }

    fn newest(&self) -> (u64, u64) {
        (self.shared.generation(), self.shared.plugins.generation())
    }

    /// Whether the site or the plugins have changed since this worker looked last.
    fn is_outdated(&self) -> bool {
        self.generation != self.newest()
    }

    /// Takes note of changes to the site and the plugins, and of the time.
    pub(crate) fn refresh(&mut self) {
        self.dates.refresh();
        if !self.is_outdated() {
            return;
        }
        let now = self.newest();
        if self.generation.0 != now.0 {
            self.site = self.shared.site.load_full();
            let lost = self.log.turn_to(self.site.log.clone());
            self.counters().log_lost.add(lost);
        }
        self.bindings = self.shared.plugins.bindings();
        self.known.clear();
        self.generation = now;
    }

    /// Once a second: writes the log, counts what instances have done.
    pub(crate) fn settle(&mut self) {
        let lost = self.log.flush();
        self.counters().log_lost.add(lost);
        self.pool.settle();
    }

    /// The answer.
    pub(crate) fn respond(&mut self, ask: &Ask<'_>) -> Answer {
        let mut answered = self.attempt(ask);
        // It was made by what held before, or by some of both: then this request is one of those
        // that come after the change. A handler that was there is not called again.
        let may_repeat = match &answered {
            Ok(answer) => answer.plugin.as_ref().is_none_or(|it| it.config.kind != Kind::Handler),
            Err(Failure(status)) => *status == 503,
        };
        if may_repeat && self.is_outdated() {
            self.refresh();
            answered = self.attempt(ask);
        }
        let mut answer = answered.unwrap_or_else(|Failure(status)| self.failure(status));
        if ask.is_head()
            && let Body::Reply(lease, _) = std::mem::replace(&mut answer.body, Body::Empty)
        {
            self.pool.give_back(lease);
        }
        answer
    }

    fn attempt(&mut self, ask: &Ask<'_>) -> Result<Answer, Failure> {
        self.fields.clear();
        let answer = self.answer(ask)?;
        self.with_heads(ask, answer)
    }

    /// The answer to what cannot be read.
    pub(crate) fn refusal(&mut self, refusal: Refusal) -> Answer {
        self.failure(refusal.status)
    }

    fn failure(&mut self, status: u16) -> Answer {
        self.fields.clear();
        self.fields.extend_from_slice(b"Content-Type: text/plain; charset=utf-8\r\n");
        if status == 405 {
            self.fields.extend_from_slice(b"Allow: GET, HEAD\r\n");
        }
        if status == 503 {
            self.fields.extend_from_slice(b"Retry-After: 1\r\n");
        }
        let text = format!("{status} {}\n", reason(status));
        Answer::new(status, Body::Bytes(text.into()))
    }

    /// The head of an answer in HTTP/1.
    pub(crate) fn head(&self, answer: &Answer, minor: u8, keep: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(b"HTTP/1.1 ");
        number(out, u64::from(answer.status));
        out.push(b' ');
        out.extend_from_slice(reason(answer.status).as_bytes());
        out.extend_from_slice(b"\r\nServer: dewar\r\nDate: ");
        out.extend_from_slice(self.dates.http().as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.fields);
        if answer.has_length() {
            out.extend_from_slice(b"Content-Length: ");
            number(out, answer.len);
            out.extend_from_slice(b"\r\n");
        }
        match (keep, minor) {
            (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
            (true, 0) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            (true, _) => {}
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Counts and logs an answer.
    pub(crate) fn done(&mut self, ask: &Ask<'_>, record: Record<'_>) {
        let Record { status, bytes, us, plugin } = record;
        self.counters().answered(status, bytes, us);
        let lost = self.log.add(
            self.dates.log(),
            &Line {
                peer: ask.peer,
                method: ask.method,
                target: ask.target,
                version: ask.version,
                status,
                bytes,
                us,
                plugin,
            },
        );
        if lost > 0 {
            self.counters().log_lost.add(lost);
        }
    }
}

/// What is counted and logged of an answer.
#[derive(Clone, Copy)]
pub(crate) struct Record<'r> {
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) us: u64,
    pub(crate) plugin: Option<&'r str>,
}
