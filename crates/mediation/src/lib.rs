//! What the object managers of a run share: a call with its subject, the cache that is asked about
//! it, the labels of processes, the runs inside.
//!
//! ```text
//!  gate ──▶ file │ process │ socket     each decides its calls, and knows no other
//!              │       │        │
//!              ▼       ▼        ▼
//!            Asker::ask ──▶ hint ─▶ AVC ─▶ server     granted or denied, recorded in one place
//! ```
//!
//! [`MonitorState`](state::MonitorState) is what deciding takes, [`Asker`](call::Asker) one call.
//! Nothing here knows which object manager asks.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![forbid(unsafe_code)]

pub mod cache;
pub mod call;
pub mod handler;
pub mod inside;
mod link_deputy;
pub mod state;
pub mod subject;
pub mod tracking;
