//! `dewar init exec`: what the hooks of coding agents make of a command. It takes no options, as an
//! agent may write what stands behind the words that its rules let out of its sandbox.

use super::agents::program;
use anyhow::Context as _;
use clap::Args;
use std::{ffi::OsString, os::unix::process::CommandExt as _, path::PathBuf, process::Command};

/// Run a shell's command under a profile: what the hooks make of it.
#[derive(Debug, Args)]
pub(super) struct ExecArgs {
    /// The profile of the command
    #[arg(value_name = "PROFILE")]
    profile: String,

    /// The directory that `${workspace}` stands for
    #[arg(value_name = "WORKSPACE")]
    workspace: PathBuf,

    /// The command, for `bash -c`
    #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
    command: String,
}

/// Carries out `dewar init exec`: becomes `dewar run`.
pub(super) fn exec(args: &ExecArgs) -> anyhow::Result<()> {
    let mut run = Command::new(program()?);
    // Whoever resolves the workspace looks what it is: it may be another by then.
    run.args(["run", &format!("--profile={}", args.profile), "--no-home"]);
    // In one word: it may begin with a dash.
    let mut workspace = OsString::from("--workspace=");
    workspace.push(&args.workspace);
    run.arg(workspace);
    let error = run.args(["--", "bash", "-c", &args.command]).exec();
    Err(error).context("cannot start Dewar")
}
