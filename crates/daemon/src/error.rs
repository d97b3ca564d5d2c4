//! Why the daemon does not do what a client asks for.

use crate::{hosted::HostError, journal::JournalError, quota::QuotaError, state::StateError};
use std::io;

/// Booleans of one change.
pub(crate) const MOST_BOOLEANS: usize = 256;

/// Why runs of the last daemon are not there yet.
pub(crate) const RETURNING: &str =
    "the daemon was restarted, and still compiles the policies of runs that go on: try again";

/// What is wrong with a request, or kept it from being met.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("the name of a run is 1 to 64 letters, digits and `-`")]
    Name,
    #[error(
        "the name of this run looks like the id of a run, eight letters and digits: name it otherwise"
    )]
    Called,
    #[error("the daemon is of another version of Dewar: restart it")]
    OtherVersion,
    #[error("a run `{0}` is or was there")]
    Known(String),
    #[error("a run `{0}` is there")]
    Registered(String),
    #[error("a run registers with its policy")]
    NoPolicy,
    #[error(transparent)]
    Quota(#[from] QuotaError),
    #[error("the daemon does not see this process")]
    Unseen,
    #[error("no run `{0}` is registered")]
    Unregistered(String),
    #[error("only the monitor of a run speaks for it")]
    NotItsMonitor,
    #[error("a run says no more than 4 MiB of its kernel side")]
    SettledTooLong,
    #[error("the records of this user's runs are being taken for others who asked: try again")]
    Turn,
    #[error("there are so many records that some still wait in spools: try again")]
    Waiting,
    #[error("{RETURNING}")]
    Returning,
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

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    /// A run that goes on cannot follow it: its kernel side was told otherwise.
    #[error("run {run}: {why}. Nothing was changed")]
    Conflict { run: String, why: Refusal },
    #[error("more than {MOST_BOOLEANS} booleans cannot be changed at once")]
    TooManyBooleans,
    #[error("no run that uses the daemon has a policy with these booleans")]
    NoSuchBooleans,
    #[error("no run uses the daemon")]
    NoRuns,
    #[error("no run `{0}` uses the daemon; `dewar daemon --runs` lists those that do")]
    NoSuchRun(String),
    #[error("more than one run begins with `{0}`: say more of it")]
    Ambiguous(String),
    #[error("{RETURNING}")]
    Returning,
    #[error("a policy is loaded from sealed memory")]
    NotSealed,
    #[error(transparent)]
    Quota(#[from] QuotaError),
    #[error("others change these runs all the time: try again")]
    Busy,
    #[error("the change failed")]
    Failed,
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Why a run cannot go on under another policy, in words for a person.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);
