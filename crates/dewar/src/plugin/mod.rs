//! `dewar plugin`: compile, run and look at plugins.

mod build;
mod disasm;
mod host;
mod run;
mod text;

/// Compile, run and look at plugins in E-code.
#[derive(Debug, clap::Args)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check a plugin's text; with --output, write it as WebAssembly
    Build(build::BuildArgs),
    /// Run a plugin on standard input; its reply goes to standard output
    Run(run::RunArgs),
    /// Show the intermediate form that all targets share
    Disasm(disasm::DisasmArgs),
}

/// Runs `dewar plugin …`.
///
/// # Errors
///
/// When a file cannot be read or written, or a target cannot be set up. Errors in a plugin's text are shown and
/// give exit code 1.
pub(crate) fn run(args: &PluginArgs) -> anyhow::Result<()> {
    match &args.command {
        Command::Build(args) => build::run(args),
        Command::Run(args) => run::run(args),
        Command::Disasm(args) => disasm::run(args),
    }
}
