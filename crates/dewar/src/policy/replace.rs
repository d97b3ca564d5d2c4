//! `dewar policy load`: another profile for a run.

use crate::{
    control::{NewProfile, Request, Run, RunArg},
    machine, receipt,
};
use clap::Args;
use monitor::RevokeMode;
use profile::{Source, load_with_documents};

const EXAMPLES: &str = "\
Examples:
  dewar policy load ci readonly              from now on, the workspace is read-only
  dewar policy load ./build.toml             the profile was edited

Amendments that were made stay in force. What was settled in the kernel at the start stays,
too: a profile that lets the command enter another domain or make another kind of socket than
it could is refused, and so is one that takes reading from a run in mode `fast`. `[env]`,
`[limits]` and `capabilities` hold as they did.

Exit status: 0 if it is in force and complete; 1 if not; 2 for wrong use or a mistake in the
profile.";

/// Have a run go on under another profile.
///
/// What the new profile does not grant is taken back, as by `dewar revoke`; prints the same
/// receipt.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "dewar policy load [OPTIONS] [RUN] <PROFILE>")]
pub(super) struct LoadArgs {
    /// The run, as for `dewar revoke`, which may be left out when only one runs; and the profile,
    /// the name of a shipped one or a file
    #[arg(value_names = ["RUN", "PROFILE"], num_args = 1..=2, required = true)]
    run_and_profile: Vec<String>,

    /// Kill processes that hold what is taken, instead of repairing them
    #[arg(long)]
    kill: bool,

    /// Print the receipt as JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar policy load`.
pub(super) fn run(args: &LoadArgs) -> anyhow::Result<()> {
    let (run, profile) = match &args.run_and_profile[..] {
        [run, profile] => (Some(run.clone()), profile),
        words => (None, &words[0]),
    };
    let mut run = Run::find(&RunArg { run })?;
    let source = Source::from_argument(profile);
    // Compiled here as well, where mistakes can be shown in their places and hosts be resolved.
    let variables = &run.status.variables;
    let (compiled, documents) = load_with_documents(&source, variables, &mut machine::resolve)?;
    let hosts = compiled.named_hosts().map(|(name, found)| (name.to_owned(), found)).collect();
    let new = NewProfile { name: source.title(), texts: documents.texts(), hosts };
    let mode = if args.kill { RevokeMode::Kill } else { RevokeMode::Repair };
    let change = run.change(Request::Load(new, mode))?;
    receipt::print(&change, args.json)
}
