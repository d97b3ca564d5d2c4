//! What a run and its prompter say to each other: a line of JSON each, over a pair of sockets that
//! nobody else holds.

use super::Denial;
use crate::control::{Reply, Request};
use monitor::Verdict;
use profile::Variables;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::BTreeMap,
    io::{self, BufRead as _, BufReader, Write as _},
    net::IpAddr,
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

/// What a prompter is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToPrompter {
    /// First of all: answered by [`ToRun::Ready`].
    Begin(Box<Setup>),
    /// A call waits.
    Ask { id: u64, call: u64, denial: Box<Denial> },
    /// It waits no longer.
    Gone(u64),
    /// The reply to a request of that number.
    Reply(u64, Box<Reply>),
    /// Whether the sandbox stands still, as that number wanted.
    Held(u64, bool),
    /// It does so no longer.
    Loose(u64),
}

/// What a prompter says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToRun {
    /// It can be asked.
    Ready,
    /// It cannot; why.
    Failed(String),
    /// The answer to a question.
    Answer(u64, Verdict),
    /// For the record of the run.
    Note(Answered),
    /// Something that others ask by the control socket; answered under that number.
    Request(u64, Box<Request>),
    /// The sandbox is to stand still.
    Hold(u64),
    /// It may go on.
    LetGo(u64),
}

/// The run that a prompter is for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) command: Vec<String>,
    /// The profile as it was named, and where.
    pub(crate) argument: String,
    pub(crate) directory: PathBuf,
    pub(crate) variables: Variables,
    /// The hosts that the profile names, by the addresses that the run knows them by.
    pub(crate) hosts: BTreeMap<String, Vec<IpAddr>>,
    /// The monitor.
    pub(crate) monitor: u32,
    /// Whether people are asked about denials.
    pub(crate) asks: bool,
    /// Why they are not asked on the terminal of the run, if there is a reason.
    pub(crate) elsewhere: Option<String>,
    pub(crate) timeout: Duration,
    /// Questions in a minute.
    pub(crate) rate: usize,
    /// What the program inside may propose.
    pub(crate) propose: Option<Propose>,
}

/// What a program inside may propose, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Propose {
    /// The socket, as it is called inside and outside.
    pub(crate) socket: PathBuf,
    /// The profile within which proposals are granted unasked: its title, and the texts that it was
    /// read from when the run began.
    pub(crate) within: Option<(String, Vec<(String, String)>)>,
}

/// An answer, for the record of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) when: SystemTime,
    /// Who wanted what.
    pub(crate) what: String,
    /// `once`, `run`, `profile`, `no`, or why there was none.
    pub(crate) answer: String,
    pub(crate) by: String,
}

/// The end of a link that speaks.
pub(crate) struct Sender(Mutex<UnixStream>);

impl Sender {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self(Mutex::new(stream))
    }

    /// Says something.
    pub(crate) fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }
}

/// The end of a link that hears.
pub(crate) struct Receiver(BufReader<UnixStream>);

impl Receiver {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self(BufReader::new(stream))
    }

    /// What is said next; `None` at the end, and for what is no message.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => serde_json::from_str(&line).ok(),
        }
    }
}
