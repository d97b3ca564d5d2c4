//! Why a server does not run.

use crate::{config::ConfigError, manager::ManagerError, plugins::PluginError};
use std::io;

/// Why a server does not run, or not as it is told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// What it is told makes no sense.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A plugin cannot be had.
    #[error("{0}")]
    Plugin(#[from] PluginError),
    /// The policy cannot be had.
    #[error("{0}")]
    Manager(#[from] ManagerError),
    /// The system refuses something.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        error: io::Error,
    },
    /// A certificate or key is none.
    #[error("{what}: {why}")]
    Tls {
        /// The file.
        what: String,
        /// Why not.
        why: String,
    },
}

impl ServerError {
    pub(crate) fn system(what: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), error: error.into() }
    }
}
