//! `dewar policy env`.

use super::profiles;
use crate::output;
use clap::Args;
use monitor::visible;
use profile::{Environment, Fate};
use serde_json::json;
use std::fmt::Write as _;

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

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar policy env`.
pub(super) fn run(args: &EnvArgs) -> anyhow::Result<()> {
    let compiled = profiles::compile(&args.profile, None, false)?;
    let text =
        if args.json { in_json(&compiled.environment)? } else { tell(&compiled.environment) };
    Ok(output::print(text.as_bytes())?)
}

/// Every variable of here, and every one that the profile sets, by name.
fn fates(environment: &Environment) -> Vec<(String, Fate)> {
    let outside = std::env::vars_os();
    let here = outside.map(|(name, value)| {
        (name.to_string_lossy().into_owned(), environment.fate(&name, &value))
    });
    let set = environment.set.keys().map(|name| (name.clone(), Fate::Set));
    let mut fates: Vec<(String, Fate)> = here.chain(set).collect();
    fates.sort_by(|a, b| a.0.cmp(&b.0));
    fates.dedup_by(|a, b| a.0 == b.0);
    fates
}

fn in_json(environment: &Environment) -> serde_json::Result<String> {
    let rows = fates(environment).into_iter().map(
        |(name, fate)| json!({ "name": name, "passes": fate.is_seen(), "why": fate.to_string() }),
    );
    output::json(&rows.collect::<Vec<_>>())
}

/// What becomes of each variable, one a line.
pub(crate) fn tell(environment: &Environment) -> String {
    let fates = fates(environment);
    let width = fates.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for (name, fate) in fates {
        let seen = if fate.is_seen() { "passes" } else { "kept out" };
        // Writing to a `String` cannot fail.
        let (name, fate) = (visible(&name), visible(&fate.to_string()));
        let _ = writeln!(text, "{seen:9} {name:width$}  {fate}");
    }
    text
}
