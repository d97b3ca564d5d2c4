//! What is laid down around a command before its first instruction, computed from a policy.
//!
//! ```text
//!       policy ─▶ KernelPolicy (plan, labelling rules, what every domain may)
//!                    │
//!                    ▼
//! LaunchRequest ─▶ Confinement::new ─▶ arrangement ─▶ view (mounts)
//!                    │                 exactness ───▶ envelope (Landlock)
//!                    │                 traps ───────▶ filter (seccomp)
//!                    ├── enter ─▶ start ─▶ launch: namespaces, cgroup, limits ─▶ command, listener
//!                    ▼
//!                 Settled: what holds in the kernel until the end of the run
//! ```
//!
//! This crate knows nothing of calls: who decides them (`monitor`) receives a listener and
//! [`Settled`]. It knows no policy either: it asks a [`flask::SecurityServer`].
//!
//! # Example
//!
//! Whether a policy can hold in a run that goes on:
//!
//! ```no_run
//! # fn ask(settled: &[u8], server: &dyn flask::SecurityServer) {
//! match confine::admits(settled, server, false) {
//!     Ok(()) => println!("it can"),
//!     Err(why) => println!("{why}"),
//! }
//! # }
//! ```
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod arrange;
mod bpf;
mod confinement;
mod filter;
pub mod launch;
pub mod layers;
mod plan;
mod policy;
mod policy_state;
mod settled;
mod sys;

pub use arrange::{PRIVATE, file_kind};
pub use bpf::TooLong;
pub use confinement::{ConfineError, Confinement, Exactness, LaunchRequest};
pub use filter::{
    DECIDED, F_SETOWN_EX, Handler, Mode, NEW_NAMESPACES, Only, REQUESTS, Refused, SET_OWNER,
    handler, refusals,
};
pub use landlock::ABI;
pub use plan::{Plan, READS, Rights, Subtree, WRITES, computed, entered};
pub use policy::{KernelPolicy, ReadError};
pub use policy_state::PolicyState;
pub use settled::{Conflict, OutOfReach, Settled, Uncovered, admits, refuse_taken};
