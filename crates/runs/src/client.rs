//! Which process of which run is behind a connection.

use crate::{Answer, Connector, Question, RunDirectory, VERSION, Versioned, read};
use flask::Sid;
use ipc::{Call, ConnectError, Generation, Label, Peer, PeerLabels, Port, Transport};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    str,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a run may take to answer; it needs no more than a look at one process.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sockets of one monitor that are tried. It has one.
const MOST_SOCKETS: usize = 4;

/// How the names of sockets begin that a monitor has connected, as in unix(7).
const PREFIX: &[u8] = b"\0dewar/";

/// A process in a sandbox that has connected.
#[derive(Debug)]
pub struct Client {
    connector: Connector,
    process: Peer,
    until: Generation,
}

/// Why it cannot be told who connected. Nothing is to be granted then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unknown {
    /// The system does not tell; for example, the socket is not connected, or who connected it is
    /// gone.
    #[error("cannot tell who connected: {0}")]
    Io(#[from] io::Error),
    /// The client's socket has a name of its own, as a process inside or outside may give it.
    #[error(
        "the client has bound its socket to a name before it connected, so that nobody vouches for it"
    )]
    Named,
    /// No control socket.
    #[error("process {0} connected for a sandbox, but no such run of user {1} can be asked")]
    NoRun(i32, u32),
    /// The run does not vouch for it.
    #[error("the run does not vouch for the client: {0}")]
    Refused(String),
}

impl Client {
    /// Its security context.
    #[must_use]
    pub fn context(&self) -> &str {
        &self.connector.context
    }

    /// Its domain, as the profile names it: the type in its context, without `_t`.
    #[must_use]
    pub fn domain(&self) -> &str {
        flask::domain_of(&self.connector.context)
    }

    /// The id of its run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.connector.run
    }

    /// What `dewar run --name` called its run.
    #[must_use]
    pub fn run_name(&self) -> Option<&str> {
        self.connector.name.as_deref()
    }

    /// The process, by number and descriptor, and the user that it runs as.
    #[must_use]
    pub fn process(&self) -> &Peer {
        &self.process
    }

    /// Whether no process of its run has entered another domain since; if not, ask again.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.until.is_current()
    }
}

/// The process in a sandbox that connected a unix socket; `None` if it was one outside of every
/// sandbox.
///
/// # Errors
///
/// [`Unknown`] if neither is certain.
pub fn client(socket: BorrowedFd<'_>) -> Result<Option<Client>, Unknown> {
    client_of(&Peer::of(socket)?)
}

fn client_of(peer: &Peer) -> Result<Option<Client>, Unknown> {
    let Some(name) = peer.name().strip_prefix(PREFIX) else {
        return if peer.name().is_empty() { Ok(None) } else { Err(Unknown::Named) };
    };
    let name = str::from_utf8(name).map_err(|_| Unknown::Named)?;
    let client = ask(peer, format!("dewar/{name}"))?;
    // The monitor lives after it was asked: nobody else has had its number since it connected.
    if peer.is_alive() { Ok(Some(client)) } else { Err(no_run(peer)) }
}

fn no_run(peer: &Peer) -> Unknown {
    Unknown::NoRun(peer.pid(), peer.uid())
}

/// Asks the monitor that `peer` is.
fn ask(peer: &Peer, name: String) -> Result<Client, Unknown> {
    let mut port = connect(peer)?;
    port.set_timeout(Some(PATIENCE));
    let question = Versioned { version: VERSION, said: Question::Connector(name) };
    let body = serde_json::to_vec(&question).map_err(io::Error::from)?;
    let failed = |error: &dyn std::fmt::Display| Unknown::Refused(error.to_string());
    let call = Call { body: &body, ..Call::default() };
    let reply = port.send(call).map_err(|error| failed(&error))?;
    let connector = match read(reply.body).map_err(|error| failed(&error))? {
        Answer::Connector(connector) => connector,
        Answer::Refused(why) => return Err(Unknown::Refused(why)),
    };
    let odd = || Unknown::Refused("its answer is not what it should be".into());
    let Ok([counter, pidfd]) = <[_; 2]>::try_from(reply.descriptors) else { return Err(odd()) };
    let pid = i32::try_from(connector.pid).map_err(|_| odd())?;
    let until = Generation::shared(counter.as_fd(), connector.generation)?;
    Ok(Client { process: peer.spoken_for(pid, pidfd), connector, until })
}

/// A connection to the control socket at which the process `peer` itself listens.
fn connect(peer: &Peer) -> Result<Port, Unknown> {
    let begin = Instant::now();
    for place in RunDirectory::of_user(peer.uid()) {
        let entries = place.entries()?.into_iter().filter(|entry| entry.pid == peer.pid());
        for entry in entries.take(MOST_SOCKETS) {
            // For all together: the directory is the client's.
            let left = PATIENCE.saturating_sub(begin.elapsed());
            if left.is_zero() {
                break;
            }
            match Port::connect_within(&place.socket(&entry), Transport::Socket, left) {
                // Whoever can write to the directory can leave a socket of any name there.
                Ok(port) if port.peer()?.pid() == peer.pid() => return Ok(port),
                Err(ConnectError::Denied) => {
                    return Err(Unknown::Refused("it does not let this process ask".into()));
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    Err(no_run(peer))
}

/// The record of labels for ports: processes in sandboxes, as their runs vouch for them, and those
/// outside.
pub struct RunLabels<F> {
    inside: F,
    outside: Option<Arc<dyn PeerLabels>>,
}

impl<F: Fn(&Client) -> Option<Sid> + Send + Sync> RunLabels<F> {
    /// `inside` says which label a client in a sandbox has for the service, `None` for no access.
    /// Nobody outside has any.
    pub fn new(inside: F) -> Self {
        Self { inside, outside: None }
    }

    /// Processes outside of every sandbox have the labels that `outside` says.
    #[must_use]
    pub fn with_outside(self, outside: Arc<dyn PeerLabels>) -> Self {
        Self { outside: Some(outside), ..self }
    }
}

impl<F: Fn(&Client) -> Option<Sid> + Send + Sync> PeerLabels for RunLabels<F> {
    fn identify(&self, peer: &Peer) -> Option<Label> {
        match client_of(peer).ok()? {
            None => self.outside.as_ref()?.identify(peer),
            Some(client) => {
                let sid = (self.inside)(&client)?;
                Some(Label::new(sid, client.until).of_speaker(client.process))
            }
        }
    }
}
