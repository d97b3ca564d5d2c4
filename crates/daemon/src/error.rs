//! Why the daemon does not do what a client asks for.

use crate::{daemon::ChangeError, hosted::HostError, journal::JournalError, state::StateError};
use std::io;

/// What is wrong with a request, or kept it from being met.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("the name of a run is 1 to 64 letters, digits and `-`")]
    Name,
    #[error("the daemon is of another version of Dewar: restart it")]
    OtherVersion,
    #[error("a run `{0}` is or was there")]
    Known(String),
    #[error("a run `{0}` is there")]
    Registered(String),
    #[error("a run registers with its policy")]
    NoPolicy,
    #[error("this user has as many runs, or as large policies, as one may have")]
    TooMany,
    #[error("the daemon does not see this process")]
    Unseen,
    #[error("no run `{0}` is registered")]
    Unregistered(String),
    #[error("only the monitor of a run speaks for it")]
    NotItsMonitor,
    #[error("a run says no more than 4 MiB of its kernel side")]
    SettledTooLong,
    #[error("this connection is no run's")]
    NoRun,
    #[error("the daemon does not know this command: is it of another version of Dewar?")]
    UnknownCommand,
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Io(#[from] io::Error),
}
