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
#![forbid(unsafe_code)]

mod asking;
mod control;
mod exec;
mod gate;
mod lead;
mod process;
mod revoke;
mod run;
mod shared;
mod socket;

pub use asking::{Asking, Question, Verdict};
pub use audit::{CallTime, Deed, DeedKind, Planted, Record, Trail, Watch, Why, is_gone};
pub use avc::Stats;
pub use control::Control;
pub use flask::visible;
pub use mediation::inside::{CompileInner, InnerPolicy, InsideError};
pub use mediation::subject::connection::Connector;
pub use process::ProcessStatus;
pub use revoke::{Action, ApplyError, ByName, Held, Hold, Holder, Receipt, RevokeMode};
pub use run::{Enforce, Job, Report, RunError, run};
