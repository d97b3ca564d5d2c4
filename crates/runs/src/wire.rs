//! What a run is asked about a connection, and answers: a part of what control sockets speak, in
//! JSON.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

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

/// Why a message was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is none.
    #[error("not a message of Dewar's: {0}")]
    Json(#[from] serde_json::Error),
    /// It is in this one.
    #[error("the two sides are of different versions of Dewar ({0}, {VERSION})")]
    Version(u32),
}

/// What a message says.
///
/// # Errors
///
/// [`ReadError`]. Another version is told from rubbish, whatever is said in it.
pub fn read<T: DeserializeOwned>(message: &[u8]) -> Result<T, ReadError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let Version { version } = serde_json::from_slice(message)?;
    if version != VERSION {
        return Err(ReadError::Version(version));
    }
    let message: Versioned<T> = serde_json::from_slice(message)?;
    Ok(message.said)
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
    /// This one. Two descriptors come with it: memory with the counter that grows before any label
    /// of the run changes, and the process.
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
