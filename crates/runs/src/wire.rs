//! What a run is asked about a connection, and answers: a part of what control sockets speak, in JSON.

use serde::{Deserialize, Serialize};

/// The version of what control sockets speak. Both sides say it first.
pub const VERSION: u32 = 1;

/// A message, and the version that it is in.
#[derive(Debug, Serialize, Deserialize)]
pub struct Versioned<T> {
    /// [`VERSION`].
    pub version: u32,
    /// The message.
    pub said: T,
}

/// A question.
#[derive(Debug, Serialize, Deserialize)]
pub enum Question {
    /// Which process made the connection whose socket has this abstract name.
    Connector(String),
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// This one. Two descriptors come with it: memory with the counter that grows before any label of the run changes,
    /// and the process.
    Connector(Connector),
    /// None that the run vouches for; why.
    Refused(String),
}

/// The process that made a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connector {
    /// In the monitor's PID namespace.
    pub pid: u32,
    /// Its security context.
    pub context: String,
    /// Where the counter stood before this was looked up.
    pub generation: u64,
    /// The id of the run.
    pub run: String,
    /// The name that the run was given.
    pub name: Option<String>,
}
