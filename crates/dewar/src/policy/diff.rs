//! `dewar policy diff`.

use super::load;
use crate::output;
use clap::Args;
use security_server::Engine;
use security_server::analysis::{Change, diff};
use serde_json::json;
use std::fmt::Write as _;

/// Show which authority a new policy adds or takes away.
///
/// Compares what rules grant, as sets of (type, type, class, permission), with booleans as each policy sets them;
/// rules that are written differently and grant the same do not show. Exit status: 0, or 2 for a mistake.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The policy before
    #[arg(value_name = "OLD")]
    old: String,

    /// The policy after
    #[arg(value_name = "NEW")]
    new: String,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar policy diff`.
pub(super) fn run(args: &DiffArgs) -> anyhow::Result<()> {
    let engine = |name: &String| load::load(std::slice::from_ref(name)).map(Engine::new);
    let changes = diff(&engine(&args.old)?, &engine(&args.new)?);
    let mut text = String::new();
    for change in &changes {
        if args.json {
            let Change { source, target, class, added, removed } = change;
            let value = json!({"source": source, "target": target, "class": class, "added": added, "removed": removed});
            writeln!(text, "{value}")?;
        } else {
            for (sign, perms) in [('+', &change.added), ('-', &change.removed)] {
                if !perms.is_empty() {
                    let (source, target, class) = (&change.source, &change.target, &change.class);
                    writeln!(text, "{sign} {source} {target} {class} {{ {} }}", perms.join(" "))?;
                }
            }
        }
    }
    Ok(output::print(text.as_bytes())?)
}
