//! `dewar bench ipc` and `dewar bench decision`.

use crate::show;
use anyhow::Context as _;
use bench::calls::{self, Subject};
use cli::{args::bench::CallArgs, failure::Usage};
use std::io::{IsTerminal as _, stderr};

/// Measures, and prints what was asked for.
pub(crate) fn run(subject: Subject, args: &CallArgs) -> anyhow::Result<()> {
    if let Some(peers) = &args.peers {
        std::fs::metadata(peers).map_err(|error| {
            let peers = peers.display();
            Usage(format!("cannot find `{peers}`: {error}; `--peers` names a program of peers/"))
        })?;
    }
    let terminal = stderr().is_terminal();
    let report =
        calls::run(subject, args.rounds as usize, args.peers.as_deref(), &mut |placement| {
            if terminal {
                eprintln!("measuring: {placement}");
            }
        });
    let report = report.context("cannot measure calls")?;
    show::keep(&report.section(), &args.show)?;
    show::sheets(&report.sheets(), &report, &args.show)
}
