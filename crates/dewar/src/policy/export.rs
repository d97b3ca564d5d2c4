//! `dewar policy export`.

use super::load;
use crate::output;
use clap::Args;
use serde_json::json;

const STATUS: &str = "Exit status: 0; 2 for wrong use, or a mistake in the policy.";

/// Write a policy as one CIL file that grants and labels the same.
///
/// Names are written in full, attributes with their members, macros and blocks as what they stand
/// for.
#[derive(Debug, Args)]
#[command(after_help = STATUS)]
pub(super) struct ExportArgs {
    /// Policy: a profile, CIL files or a binary policy
    #[arg(value_name = "POLICY", required = true)]
    policies: Vec<String>,

    /// The language to write: CIL, the only one
    #[arg(long, default_value_t = true, action = clap::ArgAction::SetTrue)]
    cil: bool,

    /// Print one JSON object, with the text as its member `cil`
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar policy export`.
pub(super) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let policy = load::load(&args.policies)?;
    debug_assert!(args.cil);
    let cil = policy.to_cil();
    let text = if args.json { format!("{}\n", json!({"cil": cil})) } else { cil };
    Ok(output::print(text.as_bytes())?)
}
