//! One process that serves the policies of many runs, keeps their state over its own end, and writes the journal.
//!
//! ```text
//!  dewar run ── register, with its policy ──▶ Keeper ─▶ Hosted: one security server for equal policies
//!      │  ◀─ spool ─                            │           ├─▶ State (SQLite): policies, SIDs, booleans, runs
//!      ├── queries, changes ══ server-port ═════┤           └─▶ Members: who has applied which policy state
//!      └── audit records ─▶ spool (a file) ─────▶ Journal (SQLite) ◀── dewar audit
//! ```
//!
//! Whatever this process answers was written down before, so that one that is killed is no more than away for a
//! moment: runs go on with what their caches hold, wait for it, find it again, and are told which policy state is in
//! force. Audit records lie in a file that outlives both ends, and are taken from it once each.
//!
//! [`Keeper`] is the process; [`Registration`] is what a run holds of it; [`Administration`] changes booleans.
#![forbid(unsafe_code)]

mod client;
mod hosted;
mod journal;
mod keeper;
mod place;
mod process;
mod protocol;
mod registry;
mod session;
mod spool;
mod state;

pub use client::{Administration, ClientError, Registration, register};
pub use journal::{Entry, Filter, Journal, JournalError, RunEntry};
pub use keeper::{Keeper, Settings, StartError};
pub use place::Place;
pub use protocol::{Changed, ChangedMember, NewRun, Policy, RunStatus, Target, decode};
pub use spool::{Batch, HEADER_BYTES, Reader, Writer};
pub use state::StateError;
