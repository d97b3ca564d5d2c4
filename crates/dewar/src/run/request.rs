//! What the command line asked for.

use crate::learning::Learning;
use confine::Mode;
use monitor::Enforce;
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// What the command line asked for.
pub(crate) struct RunRequest {
    /// A shipped profile's name, or a file; `None` for that of the project, if there is one.
    pub(crate) profile: Option<String>,
    /// What `dewar ps` and others call the run.
    pub(crate) name: Option<String>,
    /// Overrides the profile's mode.
    pub(crate) mode: Option<Mode>,
    /// The directory that `${workspace}` stands for; the working directory, unless it was named.
    pub(crate) workspace: Option<PathBuf>,
    /// Refuses a workspace that the home lies in.
    pub(crate) no_home: bool,
    /// Prints the resolution of decisions at the end.
    pub(crate) stats: bool,
    /// Where every decision goes: a file, or `-` for standard error.
    pub(crate) audit: Option<PathBuf>,
    /// Whether a daemon decides.
    pub(crate) daemon: UseDaemon,
    /// The journal of the daemon gets every decision, not only denials.
    pub(crate) record_all: bool,
    /// CIL files that are part of the policy.
    pub(crate) cil: Vec<PathBuf>,
    /// Runs although something asked for cannot be enforced here.
    pub(crate) allow_degraded: bool,
    /// Layers to do without, as if this machine lacked them.
    pub(crate) without: Vec<String>,
    /// Which object managers decide.
    pub(crate) enforce: Enforce,
    /// Prints the summary as JSON.
    pub(crate) json: bool,
    /// Says which environment variables pass.
    pub(crate) show_env: bool,
    /// Says what is set up, and how.
    pub(crate) verbose: bool,
    /// Whether somebody is asked before something is denied.
    pub(crate) ask: Option<AskRequest>,
    /// Says nothing that is no mistake.
    pub(crate) quiet: bool,
    /// Says what would be laid down, and runs nothing.
    pub(crate) dry_run: bool,
    /// It is learned from: its profile grants nearly everything.
    pub(crate) learning: Option<Learning>,
    /// The command and its arguments.
    pub(crate) command: Vec<OsString>,
}

/// Whether a run uses a daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UseDaemon {
    /// If one answers.
    #[default]
    IfThere,
    /// It fails without one.
    Insist,
    /// Never.
    No,
}

/// What `dewar run --ask` wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskRequest {
    /// How long a question is open.
    pub(crate) timeout: Duration,
    /// Questions in a minute.
    pub(crate) rate: usize,
}
