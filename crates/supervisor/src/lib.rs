//! The supervisor of a seccomp filter (seccomp_unotify(2)): how the threads of a sandbox are heard,
//! answered, stopped, and used. It decides nothing and knows no policy.
//!
//! ```text
//!  thread ── trapped call ──▶ Listener ──▶ Notification ──▶ Caller: memory, directories, who it is
//!                                              │          resolve, walk: what its paths name
//!                                              │
//!           Quiesce: lets calls in, and nobody while policy changes
//!                                              │
//!  thread ◀── errno, value, descriptor, "go on" ── Listener
//!
//!  Stopped: all threads, held by ptrace(2) ──▶ Injector: calls made in the place of one
//! ```
//!
//! Its unsafe code is below `sys/`. Other crates of the monitor have theirs likewise (`confine`,
//! `inode-labels`, `proc`): what decides has none.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use supervisor::{Notification, Quiesce};
//!
//! let call = |id| Notification { id, tid: 7, nr: 0, args: [0; 6] };
//! let quiesce = Quiesce::default();
//! assert!(quiesce.enter(&call(1)));
//! quiesce.leave(1);
//! // From here on calls wait, and those inside are waited for: there is none.
//! assert!(quiesce.close(Duration::from_secs(1)).is_empty());
//! assert!(!quiesce.enter(&call(2)));
//! quiesce.open();
//! assert_eq!(quiesce.next_held().map(|call| call.id), Some(2));
//! ```
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

pub mod address;
mod answer;
mod caller;
mod execs;
pub mod flight;
mod found;
mod fs_state;
mod inject;
mod kept_number;
mod link_directories;
pub mod missing_capabilities;
mod on_behalf;
mod one_cpu;
mod pending;
mod quiesce;
mod resolve;
mod room;
pub mod script;
mod seize_timeout;
mod signal;
mod standby;
mod stop;
mod sys;
mod targets;
mod witness;

pub use answer::{ANEW, Answer, CallResult, RESTART};
pub use caller::Caller;
pub use execs::{Awaited, Execs};
pub use found::WalkedPath;
pub use fs_state::FsState;
pub use inject::{Call, Injector, call_at_exec};
pub use kept_number::KeptNumber;
pub use link_directories::LinkDirectories;
pub use missing_capabilities::MissingCapabilities;
pub use on_behalf::OnBehalf;
pub use pending::PendingCalls;
pub use quiesce::Quiesce;
pub use resolve::{
    Name, resolve, resolve_for_caller, resolve_within, walk, walk_for_caller, walk_no_magiclinks,
    walk_to_create,
};
pub use room::{Passing, Room};
pub use seize_timeout::SeizeTimeout;
pub use signal::{kill_inside, signal_inside};
pub use standby::Standby;
pub use stop::{
    PAUSE, Stopped, can_be_held_up, end_held_up_execs, help_to_seize, is_alive, is_running, lives,
};
pub use sys::{
    clock, closing, limit, memory,
    notify::{Listener, Notification},
    ptrace, socket, thread,
};
pub use targets::Targets;
pub use witness::{Witness, Witnesses};
