//! Launching a command in a sandbox.
//!
//! ```text
//! dewar ── enter_view ──▶ own mount namespace, the view is built
//!   │
//!   ├── start ── clone ──▶  init (pid 1) ── fork ──▶ command's process
//!   │                         │ /proc, loopback,        │ limits, envelope, filter
//!   │   ◀──── listener ───────│─────────────────────────┤
//!   ├── release ──────────────│───────────────────────▶ │ exec
//!   └── wait ◀── reports ─────┘
//! ```
//!
//! Without a PID namespace there is one process more, the subreaper, between `dewar` and init.
//!
//! The process that calls [`enter_view`] becomes the monitor: it shares its mount namespace and
//! root with the sandbox, so that a path means the same to both.

mod capabilities;
mod cgroup;
mod command;
mod descendants;
mod diag;
mod envelope;
mod event_wait;
mod exec;
mod given;
mod inherited;
mod init;
mod init_spec;
pub mod inside;
mod limits;
mod mounts;
mod namespaces;
mod outcome;
pub(crate) mod probe;
mod sandbox;
mod signals;
mod start;
mod step;
mod stop;
mod subreaper;
mod terminal;
mod terminals;
mod view;
mod wire;

use std::ffi::OsString;
use std::path::PathBuf;

pub use crate::sys::ignore_background;
pub use capabilities::with_raised;
pub use diag::DiagSockets;
pub use envelope::Envelope;
pub use exec::CommandError;
pub use given::{Given, OpenAccess};
pub use inherited::{Inherited, Withheld};
pub use landlock::{AccessFs, BitFlags};
pub use limits::{ByCgroup, Limits, Reached};
pub use mounts::ViewError;
pub use namespaces::Namespaces;
pub use outcome::CommandStatus;
pub use rustix::thread::CapabilitySet;
pub use sandbox::{Sandbox, WaitError};
pub use start::{EnterError, Entered, StartError, Started, enter_view, start};
pub use terminals::Terminals;
pub use view::View;

/// What to launch, and in which environment.
#[derive(Clone)]
pub struct LaunchSpec {
    /// The command: a name to be looked for along `PATH`, or a path, and its arguments.
    pub command: Vec<OsString>,
    /// The command's whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory, as its path reads inside the view.
    pub cwd: PathBuf,
    /// What passes through from Dewar's caller.
    pub inherited: Inherited,
    /// The namespaces to create.
    pub namespaces: Namespaces,
    /// What exists in the file system.
    pub view: View,
    /// The upper bound that Landlock enforces; `None` for none.
    pub envelope: Option<Envelope>,
    /// The capabilities that the command keeps, as bits, of those that the caller has (an ordinary
    /// user has those of the sandbox's user namespace). With `CAP_SYS_ADMIN` it can undo the view.
    pub capabilities: u64,
    /// How much it may use.
    pub limits: Limits,
}

/// A compiled seccomp filter.
#[derive(Debug, Clone, Copy)]
pub struct Filter<'a> {
    /// The program.
    pub program: &'a [libc::sock_filter],
    /// `SECCOMP_FILTER_FLAG_*` beside `NEW_LISTENER`, such as `WAIT_KILLABLE_RECV`.
    pub flags: libc::c_ulong,
}
