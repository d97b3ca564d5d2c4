//! The monitor: what decides while a command runs.
//!
//! ```text
//!  policy ──▶ plan ──▶ arrangement (view) ──▶ envelope (Landlock) + filter (seccomp)
//!                                                        │ launch
//!  program ── system call ──▶ kernel: refused by filter or envelope, run, or
//!                             ──▶ gate ──▶ file │ process │ socket ──▶ hint ─▶ AVC ─▶ server
//!                             ◀── done on the program's behalf, continued, or errno ──▶ audit
//! ```
//!
//! [`run`](run::run) does all of it for one command. It knows no policy: it asks a
//! [`flask::SecurityServer`].
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod answer;
mod asking;
mod attempt;
mod audit;
mod call;
mod call_times;
mod caller;
mod deeds;
mod denials;
mod exec;
mod file;
mod fs_state;
mod gate;
mod handler;
mod inside;
mod label;
mod lead;
mod manager;
mod missing_capabilities;
mod pending;
mod policy;
mod privileges;
mod process;
mod quiesce;
mod refused;
mod remarks;
mod repository;
mod resolve;
mod revoke;
mod run;
mod shared;
mod socket;
mod state;
mod stop;
mod subject;
mod sys;

pub use asking::{Asking, Question, Verdict};
pub use audit::{Record, Trail};
pub use avc::Stats;
pub use call_times::CallTime;
pub use deeds::{Deed, Kind as DeedKind};
pub use file::{Planted, Watch, Why};
pub use flask::visible;
pub use inside::{CompileInner, InnerPolicy, InsideError};
pub use process::ProcessStatus;
pub use revoke::{Action, ApplyError, Control, Held, Hold, Holder, Receipt, RevokeMode};
pub use run::{Enforce, Job, Report, RunError, run};
pub use subject::connection::Connector;
