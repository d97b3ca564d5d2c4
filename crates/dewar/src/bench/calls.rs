//! `dewar bench ipc` and `dewar bench decision`.

use super::show::ShowArgs;
use anyhow::Context as _;
use bench::calls::{self, Subject};
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

    #[command(flatten)]
    show: ShowArgs,
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
    args.show.show(&report, |style| report.table(style))
}
