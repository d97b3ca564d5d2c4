//! `dewar selftest list` and `explain`.

use cli::output;
use selftest::{case::Case, cases::FAMILIES};
use serde_json::json;
use std::fmt::Write as _;

/// Prints the names of all cases.
pub(crate) fn all(in_json: bool) -> anyhow::Result<()> {
    if in_json {
        let rows = FAMILIES.iter().flat_map(|(family, cases)| {
            cases.iter().map(move |case| {
                json!({ "name": case.name, "family": family, "severity": case.severity,
                        "claim": case.claim, "source": case.source })
            })
        });
        return Ok(output::print(output::json(&rows.collect::<Vec<_>>())?.as_bytes())?);
    }
    let mut text = String::new();
    for (family, cases) in FAMILIES {
        let _ = writeln!(text, "{family}");
        for case in *cases {
            let _ = writeln!(text, "  {:<9} {}", case.severity.name(), case.name);
        }
    }
    Ok(output::print(text.as_bytes())?)
}

/// Says what a case does.
pub(crate) fn one(case: &Case) -> anyhow::Result<()> {
    let Case { name, severity, claim, source, .. } = case;
    let severity = severity.name();
    let text =
        format!("{name}\n  severity  {severity}\n  claim     {claim}\n  source    {source}\n");
    Ok(output::print(text.as_bytes())?)
}
