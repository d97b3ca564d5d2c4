//! `dewar bench ipc` and `dewar bench decision`.

use crate::output;
use anyhow::Context as _;
use bench::{
    calls::{self, Subject},
    export,
    table::Style,
};
use clap::Args;
use std::{
    io::{IsTerminal as _, stderr},
    path::PathBuf,
};

/// How to measure calls, and what to print.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// Rounds; all ways take turns in each
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Measure D-Bus, gRPC and iceoryx2, too, by this program: `peers/` of Dewar's sources, built
    #[arg(long, value_name = "PROGRAM")]
    peers: Option<PathBuf>,

    /// Print the tables as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Print the results with every round as JSON
    #[arg(long)]
    json: bool,

    /// Also write the results with every round to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    raw: Option<PathBuf>,
}

/// Measures, and prints what was asked for.
pub(crate) fn run(subject: Subject, args: &CallArgs) -> anyhow::Result<()> {
    let terminal = stderr().is_terminal();
    let report =
        calls::run(subject, args.rounds as usize, args.peers.as_deref(), &mut |placement| {
            if terminal {
                eprintln!("measuring: {placement}");
            }
        });
    let report = report.context("cannot measure calls")?;
    if let Some(path) = &args.raw {
        export::write_json(path, &report)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let text = match args {
        CallArgs { json: true, .. } => serde_json::to_string_pretty(&report)?,
        CallArgs { markdown: true, .. } => report.table(Style::Markdown),
        _ => report.table(Style::Plain),
    };
    Ok(output::print((text + "\n").as_bytes())?)
}
