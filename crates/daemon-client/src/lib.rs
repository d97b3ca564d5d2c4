//! What a run, or an administrator, holds of the daemon. This crate knows no database.
//!
//! [`DaemonDirs`] says where a daemon listens. [`register`] makes a run known to it: the run gets a
//! [`Registration`] and a [`Writer`] for its audit records. [`Administration`] changes booleans and
//! lists runs. [`protocol`] is the form of their messages, and [`Reader`] the daemon's end of the
//! records.
#![forbid(unsafe_code)]

mod client;
mod dirs;
pub mod protocol;
mod spool;

pub use client::{Administration, ClientError, Registration, register};
pub use dirs::DaemonDirs;
pub use protocol::{Changed, ChangedMember, NewRun, Policy, RunStatus, Target, decode};
pub use spool::{Batch, HEADER_BYTES, Reader, Writer};
