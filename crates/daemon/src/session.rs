//! The conversation with one client.

use crate::{
    error::{ChangeError, RequestError},
    quota::{QuotaError, Reserved},
    registry::Run,
    shared::{Client, Shared},
};
use daemon_client::protocol::{self, Command, Reply};
use ipc::{Request, Session, SessionError};
use server_port::Lent;
use std::{
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
    time::Duration,
};

/// How long a client that speaks for no run may say nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// An answer that is longer than a message, and what it counts for. The client has read it when it
/// asks again.
type Long<'s> = Option<(Lent, Reserved<'s>)>;

/// Answers a client until it is gone.
pub(crate) fn serve(shared: &Shared, mut session: Session) {
    let (mut run, mut long) = (None, None);
    // Whoever speaks for a run may be silent as long as the run.
    while let Ok(request) = session.recv(run.is_none().then_some(SILENCE)) {
        drop(long.take());
        let done = if protocol::is_command(request.body()) {
            command(shared, &mut run, request)
        } else {
            query(shared, run.as_ref(), request)
        };
        match done {
            Ok(lent) => long = lent,
            Err(_) => return,
        }
    }
}

/// A query to the security server of the client's run.
fn query<'s>(
    shared: &'s Shared,
    run: Option<&Arc<Run>>,
    request: Request<'_>,
) -> Result<Long<'s>, SessionError> {
    let Some(run) = run else {
        // Of whom should it be asked? The client sees that there is no reply.
        return Ok(None);
    };
    if server_port::waits(request.body()) {
        let (member, hosted) = (run.member(), run.hosted());
        let answer = server_port::answer(request.body(), &*hosted, Some(&member))?;
        return reply(request, &answer, None);
    }
    let uid = request.peer().uid();
    let (answer, reserved) = {
        // One at a time of each user is there before it is counted.
        let turn = match server_port::may_be_long(request.body()) {
            true => shared.answers.wait(uid).map(Some),
            false => Some(None),
        };
        let answer = match &turn {
            Some(_) => {
                let _asking = run.asking();
                server_port::answer(request.body(), &*run.hosted(), None)?
            }
            None => server_port::unanswered(),
        };
        // `asking` is free again: this takes the registry.
        counted(shared, uid, answer, server_port::unanswered)
    };
    reply(request, &answer, reserved)
}

/// An answer, and what it counts for if it is long; what `refusal` makes if that would be more than
/// the user may have.
fn counted(
    shared: &Shared,
    uid: u32,
    answer: Vec<u8>,
    refusal: impl FnOnce() -> Vec<u8>,
) -> (Vec<u8>, Option<Reserved<'_>>) {
    if !server_port::is_long(&answer) {
        return (answer, None);
    }
    match shared.reserve_bytes(uid, answer.len()) {
        Ok(reserved) => (answer, Some(reserved)),
        Err(_) => (refusal(), None),
    }
}

/// Replies. Nothing else is held meanwhile: the client may take its time.
fn reply<'s>(
    request: Request<'_>,
    answer: &[u8],
    reserved: Option<Reserved<'s>>,
) -> Result<Long<'s>, SessionError> {
    Ok(server_port::reply(request, answer)?.zip(reserved))
}

/// What came of a change.
fn changed(reply: Result<Reply, ChangeError>) -> Result<Reply, RequestError> {
    match reply {
        Err(error @ ChangeError::Conflict { .. }) => Ok(Reply::Conflict(error.to_string())),
        reply => Ok(reply?),
    }
}

fn command<'s>(
    shared: &'s Shared,
    run: &mut Option<Arc<Run>>,
    mut request: Request<'_>,
) -> Result<Long<'s>, SessionError> {
    let peer = request.peer();
    let client = Client { uid: peer.uid(), pid: peer.pid().cast_unsigned() };
    let mut descriptors = request.take_descriptors();
    let mut spool: Option<OwnedFd> = None;
    let reply = match protocol::read::<Command>(request.body()) {
        Some(Command::Register { run: new, vocabulary }) => {
            let pidfd = request.peer().as_fd().try_clone_to_owned()?;
            let made = shared.register(client, pidfd, &new, vocabulary, descriptors.pop());
            made.map(|(made, file)| {
                let seqno = made.hosted().state_number().0;
                (*run, spool) = (Some(made), Some(file));
                Reply::Attached { seqno }
            })
        }
        Some(Command::Attach { run: name }) => {
            shared.attach(client, &name, descriptors.pop()).map(|found| {
                let seqno = found.hosted().state_number().0;
                *run = Some(found);
                Reply::Attached { seqno }
            })
        }
        Some(Command::End) => match run {
            // One whose records are not taken yet may say so again.
            Some(ended) => shared.end(ended).map(|()| *run = None).map(|()| Reply::Done),
            None => Err(RequestError::NoRun),
        },
        Some(Command::Set { target, booleans }) => {
            changed(shared.set(client, &target, &booleans).map(Reply::Changed))
        }
        Some(Command::Load { kills }) => match run {
            Some(run) => {
                let loaded = shared.load(run, descriptors.pop(), kills);
                changed(loaded.map(|seqno| Reply::Loaded { seqno: seqno.0 }))
            }
            None => Err(RequestError::NoRun),
        },
        Some(Command::Runs { after }) => {
            let (runs, next) = shared.runs(client, after);
            Ok(Reply::Runs { runs, next })
        }
        Some(Command::Flush) => shared.take_records(client.uid).map(|()| Reply::Done),
        None => Err(RequestError::UnknownCommand),
    };
    let reply = reply.unwrap_or_else(|error| Reply::Refused(error.to_string()));
    let bytes = protocol::encode(&reply);
    if let Some(spool) = &spool {
        request.reply_with(&bytes, &[spool.as_fd()])?;
        return Ok(None);
    }
    let refusal = || protocol::encode(&Reply::Refused(QuotaError::Bytes.to_string()));
    let (bytes, reserved) = counted(shared, client.uid, bytes, refusal);
    self::reply(request, &bytes, reserved)
}
