//! `dewar completions`: completion scripts for shells.

use crate::commands::Dewar;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use cli::output;

const EXAMPLES: &str = "\
Examples:
  dewar completions bash > ~/.local/share/bash-completion/completions/dewar
  dewar completions zsh  > ~/.zfunc/_dewar
  dewar completions fish > ~/.config/fish/completions/dewar.fish";

/// Print the completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Carries out `dewar completions`.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Dewar::command(), "dewar", &mut script);
    Ok(output::print(&script)?)
}
