//! `dewar bench ipc` and `dewar bench decision`.

use anyhow::Context as _;
use bench::{
    calls::{self, Subject},
    table::Style,
};
use cli::{args::bench::CallArgs, output};
use std::io::{IsTerminal as _, stderr};

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
    output::report(&args.show, &report, |markdown| report.table(Style::of(markdown)))
}
