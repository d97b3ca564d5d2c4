//! What is on record of a run: what was denied and why, what was refused whatever policy says, what
//! was done, and what deciding took.
//!
//! ```text
//!  object manager ── Access (a decision) ──▶ Audit ──▶ Record ──▶ Trail: a line of JSON each
//!  filter ────────── Refusal ──────────────▶   │
//!                                              └──▶ denials: each kind once, explained
//!  object manager ── what it granted ──────▶ Activity
//!  object manager ── what nobody denied ───▶ Remarks
//!  object manager ── what it made ─────────▶ Plantings: what programs outside may execute
//!  gate ──────────── how long it took ─────▶ CallTimes
//! ```
//!
//! # Example
//!
//! ```
//! use audit::Record;
//!
//! let line = r#"{"granted":false,"call":"openat","object":"/etc/shadow","missing":["read"]}"#;
//! let record: Record = serde_json::from_str(line)?;
//! assert_eq!((record.call.as_str(), record.granted), ("openat", false));
//! # Ok::<_, serde_json::Error>(())
//! ```
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![forbid(unsafe_code)]

mod activity;
pub mod attempt;
mod call_times;
mod denials;
mod listening;
mod planted;
mod record;
pub mod refused;
mod remarks;
mod trail;

pub use activity::{Activity, Deed, Kind as DeedKind};
pub use call_times::{CallTime, CallTimes};
pub use listening::Listening;
pub use planted::{Planted, Plantings, Watch, Why, is_gone};
pub use record::Record;
pub use remarks::Remarks;
pub use trail::{Access, Audit, Refusal, Refuses, Trail};
