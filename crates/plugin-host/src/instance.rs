//! A running instance of a plugin, wherever it runs.

use crate::{isolated::Isolated, kernel::Kernel, native::Native, sys::Image};
use ecode::{CallError, ir::Spot};
use std::sync::Arc;

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
    /// It used up its time; where it was then, if that is known.
    #[error("the plugin used up its time{}", at(.0.as_ref()))]
    Timeout(Option<Spot>),
    /// It did something that has no meaning, such as using memory that is not its own.
    #[error("the plugin failed: {0}")]
    Fault(String),
    /// It returned a length that is none, or exceeds its limit.
    #[error("the plugin returned {0}, which is no length of a reply")]
    BadReply(i64),
    /// This machine, or this user, cannot have it run where it should.
    #[error("it cannot run here: {0}")]
    Unavailable(String),
    /// There is no room for the request or for another instance.
    #[error("no room: {0}")]
    NoRoom(String),
}

impl CallFailure {
    /// What an error at `spot` comes to.
    pub(crate) fn of(error: &CallError, spot: Option<&Spot>) -> Self {
        match error {
            CallError::Timeout => Self::Timeout(spot.cloned()),
            error => Self::Fault(format!("{error}{}", at(spot))),
        }
    }
}

/// How messages go on about where something was.
pub(crate) fn at(spot: Option<&Spot>) -> String {
    spot.map_or(String::new(), |spot| format!(" at {spot}"))
}

/// What `handle` returned, as a length within the room that there was.
pub(crate) fn reply_length(returned: i64, room: usize) -> Result<usize, CallFailure> {
    let length = usize::try_from(returned).ok().filter(|length| *length <= room);
    length.ok_or(CallFailure::BadReply(returned))
}

pub(crate) enum Instance {
    Isolated(Box<Isolated>),
    Native(Box<Native>),
    Kernel(Box<Kernel>),
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
            Self::Kernel(kernel) => kernel.fill(request),
        }
    }

    /// Has the plugin find `image` as its request, where it lies if the target can do that.
    pub(crate) fn view(&mut self, image: &Arc<Image>) -> Result<(), CallFailure> {
        match self {
            Self::Isolated(isolated) => isolated.view(image),
            Self::Native(native) => {
                native.view(image);
                Ok(())
            }
            Self::Kernel(kernel) => kernel.fill(image.bytes()),
        }
    }

    /// `head` and a reply in one piece, where the target has room in front of replies.
    pub(crate) fn reply_behind(&mut self, head: &[u8], len: usize) -> Option<&[u8]> {
        match self {
            Self::Isolated(isolated) => isolated.reply_behind(head, len),
            Self::Native(native) => native.reply_behind(head, len),
            Self::Kernel(_) => None,
        }
    }

    /// Runs the plugin on the request that is there; the length of its reply. After an error the
    /// instance is not used again.
    #[inline]
    pub(crate) fn run(&mut self) -> Result<usize, CallFailure> {
        match self {
            Self::Isolated(isolated) => isolated.run(),
            Self::Native(native) => native.run(),
            Self::Kernel(kernel) => kernel.run(),
        }
    }

    /// Counts what was asked since the last time in the host's statistics.
    pub(crate) fn settle(&mut self) {
        match self {
            Self::Isolated(isolated) => isolated.calls().settle(),
            Self::Native(native) => native.calls().settle(),
            Self::Kernel(kernel) => kernel.calls().settle(),
        }
    }

    /// Bytes of memory that it has, touched or not.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Isolated(isolated) => isolated.memory_bytes(),
            Self::Native(native) => native.memory_bytes(),
            Self::Kernel(kernel) => kernel.memory_bytes(),
        }
    }

    /// The first `len` bytes of the reply.
    pub(crate) fn reply(&mut self, len: usize) -> &[u8] {
        match self {
            Self::Isolated(isolated) => isolated.reply(len),
            Self::Native(native) => native.reply(len),
            Self::Kernel(kernel) => kernel.reply(len),
        }
    }
}
