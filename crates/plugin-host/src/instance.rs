//! A running instance of a plugin, wherever it runs.

use crate::{isolated::Isolated, native::Native};

/// Why a call gave no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallFailure {
    /// No plugin has this name.
    #[error("there is no plugin `{0}`")]
    Unknown(String),
    /// The policy does not let the host call it.
    #[error("the policy denies the call")]
    Denied,
    /// It failed too often; replace it to have it called again.
    #[error("the plugin is quarantined after repeated faults")]
    Quarantined,
    /// It used up its time.
    #[error("the plugin used up its time")]
    Timeout,
    /// It did something that has no meaning, such as using memory that is not its own.
    #[error("the plugin failed: {0}")]
    Fault(String),
    /// It returned a length that is none, or exceeds its limit.
    #[error("the plugin returned {0}, which is no length of a reply")]
    BadReply(i64),
    /// There is no room for the request or for another instance.
    #[error("no room: {0}")]
    NoRoom(String),
}

pub(crate) enum Instance {
    Isolated(Box<Isolated>),
    Native(Box<Native>),
}

impl Instance {
    /// Puts `request` where the plugin will find it, and makes room for its reply.
    pub(crate) fn fill(&mut self, request: &[u8]) -> Result<(), CallFailure> {
        match self {
            Self::Isolated(isolated) => isolated.fill(request),
            Self::Native(native) => {
                native.fill(request);
                Ok(())
            }
        }
    }

    /// Runs the plugin on the request that is there; the length of its reply. After an error the instance is not
    /// used again.
    #[inline]
    pub(crate) fn run(&mut self) -> Result<usize, CallFailure> {
        match self {
            Self::Isolated(isolated) => isolated.run(),
            Self::Native(native) => native.run(),
        }
    }

    /// The first `len` bytes of the reply.
    pub(crate) fn reply(&self, len: usize) -> &[u8] {
        match self {
            Self::Isolated(isolated) => isolated.reply(len),
            Self::Native(native) => native.reply(len),
        }
    }
}
