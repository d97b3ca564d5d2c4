//! Why the kernel side of a run does not go with a policy.

use crate::policy::ReadError;
use flask::Unreachable;

/// Why a policy cannot hold in a run that goes on.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// It has a domain that a running sandbox cannot take in: what its kernel side tells apart was
    /// settled at its start.
    #[error(
        "the new policy lets the command enter another domain than the running one can: start it anew"
    )]
    Domain,
    /// The kernel was told at the start that nobody has it.
    #[error("cannot be given while it runs: {0}. Start it anew under that policy")]
    Given(String),
    /// The kernel was told at the start that everybody has it, and asks nobody since.
    #[error(
        "cannot be taken back while it runs: {what}; kill instead (`--kill`, or `dewar revoke RUN --all`){hint}"
    )]
    Taken {
        /// The name of it.
        what: String,
        /// What else could be done.
        hint: &'static str,
    },
    /// A run inside would be held less than its policy says.
    #[error("{0}")]
    Inside(String),
    /// The security server does not answer.
    #[error(transparent)]
    Server(#[from] Unreachable),
    /// The policy's labelling rules are unusable.
    #[error("{0}")]
    Label(String),
    /// What was settled cannot be read.
    #[error(
        "the run says of its kernel side what makes no sense: is it of another version of Dewar?"
    )]
    Unreadable,
}

impl From<ReadError> for Conflict {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Server(error) => error.into(),
            ReadError::Label(error) => Self::Label(error.to_string()),
        }
    }
}
