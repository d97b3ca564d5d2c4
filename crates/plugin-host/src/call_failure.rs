//! Why a call of a plugin gave no reply.

use ecode::{CallError, ir::Spot};

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
    /// It failed too often, at all or on what it was to be called on; replace it to have it called
    /// again at once.
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

    /// The host's lack of room is not the plugin's fault.
    pub(crate) fn is_the_plugins(&self) -> bool {
        !matches!(self, Self::NoRoom(_) | Self::Unavailable(_))
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
