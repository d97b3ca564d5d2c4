//! One process that serves the policies of many runs, keeps their state over its own end, and
//! writes the journal.
//!
//! ```text
//!  dewar run ── register, with its policy ──▶ Daemon ─▶ Hosted: one server for equal policies
//!      │  ◀─ spool ─                            │           ├─▶ State (SQLite): policies, SIDs
//!      ├── queries, changes ══ server-port ═════┤           └─▶ Members: who has applied what
//!      └── audit records ─▶ spool (a file) ─────▶ Journal (SQLite) ◀── dewar audit
//! ```
//!
//! Whatever this process answers was written down before, so that one that is killed is no more
//! than away for a moment: runs go on with what their caches hold, wait for it, find it again, and
//! are told which policy state is in force. Audit records lie in a file that outlives both ends,
//! and are taken from it once each.
//!
//! [`Daemon`] is the process. What others hold of it is in `daemon-client`, whose names are here,
//! too.
#![forbid(unsafe_code)]

mod access;
mod daemon;
mod error;
mod hosted;
mod journal;
mod process;
mod quota;
mod registry;
mod session;
mod shared;
mod state;

pub use daemon::{Daemon, StartError};
pub use daemon_client::{
    Administration, Batch, Changed, ChangedMember, ClientError, DaemonDirs, HEADER_BYTES, NewRun,
    Policy, Reader, Registration, RunStatus, Target, Writer, decode, register,
};
pub use error::Refusal;
pub use journal::{
    Called, Filter, Journal, JournalEntry, JournalError, RunEntry, SetAside, UNKNOWN,
};
pub use shared::{Admits, Settings};
pub use state::StateError;
