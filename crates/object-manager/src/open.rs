//! Whose security server a manager asks, and why it was not opened.

use crate::PolicyFault;
use daemon_client::ClientError;
use flask::ClassesError;

/// Whose security server decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Daemon {
    /// One in this process.
    #[default]
    No,
    /// `dewar daemon`'s if one answers, else one in this process.
    IfThere,
    /// `dewar daemon`'s, or the manager does not open.
    Insist,
}

/// Why a manager was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The policy.
    #[error(transparent)]
    Policy(#[from] PolicyFault),
    /// The program's classes.
    #[error(transparent)]
    Classes(#[from] ClassesError),
    /// The daemon.
    #[error(transparent)]
    Daemon(#[from] ClientError),
    /// The system.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
