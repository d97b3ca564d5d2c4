//! What becomes of a report: a table, JSON, and a file of every run.

use crate::output;
use anyhow::Context as _;
use bench::{export, table::Style};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// How a report is printed, and where else it is kept.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Print tables as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Print the results with every single run as JSON
    #[arg(long)]
    json: bool,

    /// Also write the results with every single run to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    raw: Option<PathBuf>,
}

impl ShowArgs {
    /// Shows `report`, of which `table` makes text.
    pub(super) fn show(
        &self,
        report: &impl Serialize,
        table: impl FnOnce(Style) -> String,
    ) -> anyhow::Result<()> {
        if let Some(path) = &self.raw {
            export::write_json(path, report)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        let text = match self {
            Self { json: true, .. } => serde_json::to_string_pretty(report)?,
            Self { markdown: true, .. } => table(Style::Markdown),
            _ => table(Style::Plain),
        };
        Ok(output::print((text + "\n").as_bytes())?)
    }
}
