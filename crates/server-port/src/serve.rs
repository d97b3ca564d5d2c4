//! The server's side: one query, one answer.

use crate::{
    members::{Member, Members, Progress},
    sealed::Lent,
    wire::{self, Answer, Query},
};
use flask::{AccessVector, SecurityServer, Seqno, Sid};
use ipc::{MAX_MESSAGE, Request, Session, SessionError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{os::fd::AsFd as _, sync::Arc, time::Duration};

/// How long a client waits for a change before it is told that there is none: so both notice that
/// the other is gone.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Answers every query of a client until it is gone. A client that asks for changes becomes one of
/// `members`.
pub fn serve(mut session: Session, server: &dyn SecurityServer, members: &Arc<Members>) {
    let (mut member, mut lent) = (None, None);
    while let Ok(request) = session.recv(None) {
        // Who asks again has read the answer before.
        drop(lent.take());
        if member.is_none()
            && let Some(Query::Next { seqno, .. }) = wire::query(request.body())
        {
            member = Some(join(&request, members, Seqno(seqno)));
        }
        let answered = answer(request.body(), server, member.as_ref());
        match answered.and_then(|bytes| reply(request, &bytes)) {
            Ok(long) => lent = long,
            Err(_) => return,
        }
    }
}

fn join(request: &Request<'_>, members: &Arc<Members>, applied: Seqno) -> Member {
    let peer = request.peer();
    let name = format!("process {}", peer.pid());
    // What cannot be watched counts as alive; its member goes with its session.
    let pidfd = peer.as_fd().try_clone_to_owned().ok();
    let lives = move || {
        let Some(pidfd) = &pidfd else { return true };
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ended| ended == 0)
    };
    members.join(name, applied, lives)
}

/// Whether a message waits for a change of policy, which may take a second.
#[must_use]
pub fn waits(message: &[u8]) -> bool {
    matches!(wire::query(message), Some(Query::Next { .. }))
}

/// The answer of `server` to one query; to one for changes as `member`, without whom it is
/// nonsense.
///
/// # Errors
///
/// [`SessionError`]: the server ends, which the client is not told.
pub fn answer(
    query: &[u8],
    server: &dyn SecurityServer,
    member: Option<&Member>,
) -> Result<Vec<u8>, SessionError> {
    let found = match wire::query(query) {
        Some(Query::Next { seqno, report }) => {
            match member.map(|it| it.next(Seqno(seqno), report, HEARTBEAT)) {
                Some(Progress::Later(seqno)) => Answer::Seqno(seqno.0),
                Some(Progress::Unchanged) => Answer::Unchanged,
                Some(Progress::Stopped) => return Err(SessionError::Gone),
                None => Answer::Nonsense,
            }
        }
        Some(query) => find(server, &query).unwrap_or(Answer::Nonsense),
        None => Answer::Nonsense,
    };
    Ok(wire::encode(&found))
}

/// Whether the answer to this query may be longer than a message, as it bears names or contexts.
#[must_use]
pub fn may_be_long(query: &[u8]) -> bool {
    let short = |query| {
        matches!(query, Query::Av(_) | Query::AvBefore(_) | Query::Seqno | Query::Next { .. })
    };
    wire::query(query).is_some_and(|query| !short(query))
}

/// The answer of a server that cannot answer now.
#[must_use]
pub fn unanswered() -> Vec<u8> {
    wire::encode(&Answer::Unreachable)
}

/// Whether so many bytes are too long for a message.
#[must_use]
pub fn is_long(bytes: &[u8]) -> bool {
    bytes.len() > MAX_MESSAGE
}

/// Replies with bytes of any length. What [`is_long`] goes as memory, which
/// [`received`](crate::received) reads, and which is to be kept until the client asks again.
///
/// # Errors
///
/// [`SessionError`], mostly because the client is gone.
pub fn reply(request: Request<'_>, bytes: &[u8]) -> Result<Option<Lent>, SessionError> {
    if !is_long(bytes) {
        request.reply(bytes)?;
        return Ok(None);
    }
    let memory = Lent::new(bytes)?;
    request.reply_with(&[], &[memory.as_fd()])?;
    Ok(Some(memory))
}

/// The server's answer; `None` if a number in the query means nothing.
fn find(server: &dyn SecurityServer, query: &Query<'_>) -> Option<Answer> {
    let label = |label: Result<Sid, _>| match label {
        Ok(sid) => Answer::Sid(sid.get()),
        Err(error) => Answer::from(error),
    };
    let found = match *query {
        Query::Av(q) => server.compute_av(wire::question(q)?).map(Answer::from),
        Query::AvBefore(q) => server.compute_av_before(wire::question(q)?).map(Answer::from),
        Query::Create(q, name) => Ok(label(server.compute_create(wire::question(q)?, name))),
        Query::Member(q) => Ok(label(server.compute_member(wire::question(q)?))),
        Query::ToSid(context) => Ok(label(server.context_to_sid(context))),
        Query::ToContext(sid) => {
            let context = server.sid_to_context(Sid::new(sid)?);
            Ok(context.map_or_else(Answer::from, Answer::Context))
        }
        Query::Seqno => server.seqno().map(|seqno| Answer::Seqno(seqno.0)),
        Query::Rules => server.label_rules().map(|rules| Answer::Rules(rules.into())),
        Query::Explain(q, requested) => {
            server.explain(wire::question(q)?, AccessVector(requested)).map(Answer::from)
        }
        Query::Next { .. } => return None,
    };
    Some(found.unwrap_or(Answer::Unreachable))
}
