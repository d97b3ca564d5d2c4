//! `dewar policy env`.

use super::profiles;
use crate::{
    environment::{fates, tell},
    output,
};
use clap::Args;
use profile::Environment;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  dewar policy env                       what passes into a run under `workspace`, and why
  dewar policy env ./build.toml --json | jq '.[] | select(.passes == false).name'

Exit status: 0, or 2 for a mistake in the profile.";

/// Show which environment variables a run would see, and why.
///
/// Values are not printed. A variable is kept out by its name (`env.drop`), because nothing names
/// it, or because its value is an address with a password or has the format of a known token; a
/// name without globs in `env.pass` lets it in whatever it holds.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct EnvArgs {
    /// Profile: the name of a shipped one, or a file
    #[arg(value_name = "PROFILE", default_value = "workspace")]
    profile: String,

    /// The same, as `dewar run` names it
    #[arg(short = 'p', long = "profile", value_name = "PROFILE", conflicts_with = "profile")]
    named: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar policy env`.
pub(super) fn run(args: &EnvArgs) -> anyhow::Result<()> {
    let compiled = profiles::compile(args.named.as_ref().unwrap_or(&args.profile), None, false)?;
    let text =
        if args.json { in_json(&compiled.environment)? } else { tell(&compiled.environment) };
    Ok(output::print(text.as_bytes())?)
}

fn in_json(environment: &Environment) -> serde_json::Result<String> {
    let rows = fates(environment).into_iter().map(
        |(name, fate)| json!({ "name": name, "passes": fate.is_seen(), "why": fate.to_string() }),
    );
    output::json(&rows.collect::<Vec<_>>())
}
