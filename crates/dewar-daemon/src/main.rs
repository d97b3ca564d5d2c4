//! `dewar daemon` and `dewar audit`: the commands that need a database.
#![forbid(unsafe_code)]

mod audit;
mod daemon;

use clap::Parser;
use cli::{
    args::{AuditArgs, DaemonArgs},
    failure, output,
};
use std::process::ExitCode;

/// The part of the command line that this program carries out.
#[derive(Debug, Parser)]
#[command(name = "dewar", bin_name = "dewar", version)]
enum Command {
    Daemon(DaemonArgs),
    Audit(AuditArgs),
}

fn main() -> ExitCode {
    let done = match cli::help::parse::<Command>() {
        Ok(Command::Daemon(args)) => daemon::run(&args),
        Ok(Command::Audit(args)) => audit::run(&args),
        Err(help) if !help.use_stderr() => output::printed(help.print()),
        Err(mistake) => return failure::mistake(&mistake),
    };
    done.map_or_else(failure::report, |()| ExitCode::SUCCESS)
}
