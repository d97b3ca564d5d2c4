//! The client's side: a security server that lives in another process.

use crate::{
    sealed::received,
    wire::{self, Answer, Query},
};
use flask::{
    AccessVector, Decision, Explanation, LabelError, LabelRules, Question, SecurityServer, Seqno,
    Sid, Unreachable,
};
use ipc::{Call, CallError, Port};
use std::{
    collections::HashMap,
    io,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long one query may take.
const CALL: Duration = Duration::from_secs(2);

/// How long to wait before connecting again, and between attempts once patience has run out.
const RETRY: Duration = Duration::from_millis(10);
const RETRY_LATER: Duration = Duration::from_secs(1);

/// Contexts that are remembered, so that records need not ask for them again.
const MOST_CONTEXTS: usize = 1 << 14;

/// A security server behind a port.
///
/// While the server is away, a query waits for it up to the time given; that time is counted once
/// for each absence, so that a server that stays away does not hold up every single query. Then it
/// is [`Unreachable`], and the caller denies.
pub struct RemoteServer {
    connect: Box<dyn Fn() -> io::Result<Port> + Send + Sync>,
    patience: Duration,
    link: Mutex<Link>,
    linked: Condvar,
    /// A follower connects; queries wait for it.
    pub(crate) followed: AtomicBool,
    /// The policy state that the follower has applied.
    pub(crate) applied: AtomicU32,
    contexts: RwLock<HashMap<Sid, String>>,
    queries: AtomicU64,
    unanswered: AtomicU64,
}

#[derive(Default)]
struct Link {
    port: Option<Port>,
    /// Since when there is no answer.
    away: Option<Instant>,
    tried: Option<Instant>,
}

impl RemoteServer {
    /// Asks over ports that `connect` makes: at the first query, and again whenever one has failed.
    /// Queries wait for a server that is away up to `patience`.
    #[must_use]
    pub fn new(
        connect: impl Fn() -> io::Result<Port> + Send + Sync + 'static,
        patience: Duration,
    ) -> Self {
        Self {
            connect: Box::new(connect),
            patience,
            link: Mutex::default(),
            linked: Condvar::new(),
            followed: AtomicBool::new(false),
            applied: AtomicU32::new(0),
            contexts: RwLock::default(),
            queries: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
        }
    }

    /// How many queries were put to the server.
    #[must_use]
    pub fn queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }

    /// How many of them had no answer, so that the caller had to deny.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// The caller has applied the policy state `applied`, which nobody told the follower about:
    /// what was before the next change is that.
    pub fn applied(&self, applied: Seqno) {
        self.applied.fetch_max(applied.0, Ordering::AcqRel);
    }

    /// A port to the server, beside the one that queries go over.
    pub(crate) fn connect(&self) -> io::Result<Port> {
        (self.connect)()
    }

    /// Makes the connection for queries if there is none.
    pub(crate) fn restore(&self) {
        if self.lock().port.is_some() {
            return;
        }
        // Without the lock, so that nobody waits for longer than the patience.
        let port = self.connect();
        let mut link = self.lock();
        if let (Ok(port), None) = (port, &link.port) {
            link.set(port);
            self.linked.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to `query`, as `read` reads it.
    fn ask<T>(
        &self,
        query: &Query<'_>,
        read: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<T, Unreachable> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        let unanswered = |_: &Unreachable| {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
        };
        let message = wire::encode(query);
        let mut link = self.lock();
        loop {
            if let Some(port) = &mut link.port {
                match call(port, &message) {
                    Ok(answer) => {
                        link.away = None;
                        return answer.and_then(read).ok_or(Unreachable);
                    }
                    // What was asked may be answered later, on a new connection.
                    Err(_) => link.lose(),
                }
            }
            link = self.regain(link).inspect_err(unanswered)?;
        }
    }

    /// Waits until there may be a port again.
    fn regain<'a>(
        &'a self,
        mut link: MutexGuard<'a, Link>,
    ) -> Result<MutexGuard<'a, Link>, Unreachable> {
        let away = *link.away.get_or_insert_with(Instant::now);
        let left = self.patience.saturating_sub(away.elapsed());
        if self.followed.load(Ordering::Acquire) {
            if left.is_zero() {
                return Err(Unreachable);
            }
            let waited = self.linked.wait_timeout(link, left);
            return Ok(waited.unwrap_or_else(PoisonError::into_inner).0);
        }
        let pause = if left.is_zero() { RETRY_LATER } else { RETRY };
        if let Some(tried) = link.tried {
            let early = pause.saturating_sub(tried.elapsed());
            if left.is_zero() && !early.is_zero() {
                return Err(Unreachable);
            }
            std::thread::sleep(early);
        }
        link.tried = Some(Instant::now());
        match self.connect() {
            Ok(port) => link.set(port),
            Err(_) if left.is_zero() => return Err(Unreachable),
            Err(_) => {}
        }
        Ok(link)
    }
}

impl Link {
    fn set(&mut self, mut port: Port) {
        port.set_timeout(Some(CALL));
        self.port = Some(port);
        self.tried = None;
    }

    fn lose(&mut self) {
        self.port = None;
    }
}

/// One call; `None` for an answer that cannot be read.
pub(crate) fn call(port: &mut Port, message: &[u8]) -> Result<Option<Answer>, CallError> {
    let mut reply = port.send(Call { body: message, ..Call::default() })?;
    Ok(wire::reply(&received(&mut reply).map_err(CallError::Io)?))
}

impl SecurityServer for RemoteServer {
    fn seqno(&self) -> Result<Seqno, Unreachable> {
        self.ask(&Query::Seqno, |answer| match answer {
            Answer::Seqno(seqno) => Some(Seqno(seqno)),
            _ => None,
        })
    }

    fn compute_av(&self, q: Question) -> Result<Decision, Unreachable> {
        self.ask(&Query::Av(wire::asked(q)), Answer::decision)
    }

    fn compute_av_before(&self, q: Question) -> Result<Decision, Unreachable> {
        let decision = self.ask(&Query::AvBefore(wire::asked(q)), Answer::decision)?;
        // A follower that has missed a change would compare with a state that it never applied.
        let applied = Seqno(self.applied.load(Ordering::Acquire));
        let follows = self.followed.load(Ordering::Acquire);
        if follows && decision.seqno != applied { Err(Unreachable) } else { Ok(decision) }
    }

    fn compute_create(&self, q: Question, name: Option<&str>) -> Result<Sid, LabelError> {
        self.ask(&Query::Create(wire::asked(q), name), Some)?.label(Answer::sid)
    }

    fn compute_member(&self, q: Question) -> Result<Sid, LabelError> {
        self.ask(&Query::Member(wire::asked(q)), Some)?.label(Answer::sid)
    }

    fn context_to_sid(&self, context: &str) -> Result<Sid, LabelError> {
        self.ask(&Query::ToSid(context), Some)?.label(Answer::sid)
    }

    fn sid_to_context(&self, sid: Sid) -> Result<String, LabelError> {
        let known = self.contexts.read().unwrap_or_else(PoisonError::into_inner).get(&sid).cloned();
        if let Some(context) = known {
            return Ok(context);
        }
        let context =
            self.ask(&Query::ToContext(sid.get()), Some)?.label(|answer| match answer {
                Answer::Context(context) => Some(context),
                _ => None,
            })?;
        // An initial SID's context changes with the policy; all others stay.
        let mut contexts = self.contexts.write().unwrap_or_else(PoisonError::into_inner);
        if sid.get() > flask::InitialSid::COUNT && contexts.len() < MOST_CONTEXTS {
            contexts.insert(sid, context.clone());
        }
        Ok(context)
    }

    fn label_rules(&self) -> Result<LabelRules, Unreachable> {
        self.ask(&Query::Rules, |answer| match answer {
            Answer::Rules(rules) => rules.read(),
            _ => None,
        })
    }

    fn explain(&self, q: Question, requested: AccessVector) -> Result<Explanation, Unreachable> {
        self.ask(&Query::Explain(wire::asked(q), requested.0), Answer::explanation)
    }
}
