//! `dewar init exec`: what the hooks of coding agents make of a command. It takes no options, as an
//! agent may write what stands behind the words that its rules let out of its sandbox.

use super::agents::program;
use crate::{failure::Usage, machine};
use anyhow::{Context as _, bail};
use clap::Args;
use std::{os::unix::process::CommandExt as _, path::PathBuf, process::Command};

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
    let home = std::env::home_dir().context("cannot tell your home directory")?;
    let workspace = machine::real(&args.workspace);
    if machine::real(&home).starts_with(&workspace) {
        bail!(Usage(
            "the home, and what it lies in, is no project of an agent: start it in a directory of its own".into()
        ));
    }
    let mut run = Command::new(program()?);
    run.args(["run", &format!("--profile={}", args.profile), "--workspace"]).arg(workspace);
    let error = run.args(["--", "bash", "-c", &args.command]).exec();
    Err(error).context("cannot start Dewar")
}
