//! `dewar init`: writes what makes a project, or a tool, use Dewar.

mod agents;
mod exec;
mod hook;
mod project;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  dewar init --print       the profile for what lies here: Cargo.toml, package.json, Makefile, …
  dewar init               writes it to dewar.toml, which `dewar run` uses from then on
  dewar init claude        shell commands of Claude Code run under Dewar from then on

Exit status: 0; 2 for wrong use, or if there is a dewar.toml, which stays as it is; 125 if
nothing could be written.";

/// Set a project or a coding agent up to use Dewar.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct InitArgs {
    #[command(subcommand)]
    tool: Option<Tool>,

    #[command(flatten)]
    project: project::ProjectArgs,
}

#[derive(Debug, Subcommand)]
enum Tool {
    Claude(agents::ClaudeArgs),
    Codex(agents::CodexArgs),
    #[command(hide = true)]
    Hook(hook::HookArgs),
    #[command(hide = true)]
    Exec(exec::ExecArgs),
}

/// Carries out `dewar init`.
pub(crate) fn run(args: &InitArgs) -> anyhow::Result<()> {
    match &args.tool {
        Some(Tool::Claude(args)) => agents::claude(args),
        Some(Tool::Codex(args)) => agents::codex(args),
        Some(Tool::Hook(args)) => hook::hook(args),
        Some(Tool::Exec(args)) => exec::exec(args),
        None => project::project(&args.project),
    }
}
