//! `dewar bench`: what protection costs here.
#![forbid(unsafe_code)]

mod calls;
mod dearest;
mod kernel;
mod layers;
mod library;
mod measure;
mod releases;
mod report;
mod resolution;
mod revoke;
mod show;
mod trust;
mod web;

use bench::worker::Task;
use clap::Parser;
use cli::{args::BenchArgs, failure, output};
use confine::launch::Inherited;
use std::process::ExitCode;

/// The part of the command line that this program carries out, and what it calls itself by.
#[derive(Debug, Parser)]
#[command(name = "dewar", bin_name = "dewar", version)]
enum Command {
    Bench(BenchArgs),
    /// Measure from inside a configuration
    #[command(hide = true)]
    Worker {
        /// What to measure
        task: Task,
    },
    /// Lay layers around a command
    #[command(hide = true)]
    Layer(layers::LayerArgs),
    /// Hold what is to be taken back
    #[command(hide = true)]
    Hold(revoke::HoldArgs),
    /// Take back once what a command holds
    #[command(hide = true)]
    RevokeOnce(revoke::OnceArgs),
}

fn main() -> ExitCode {
    // First of all: descriptors that Dewar opens itself are not the command's.
    let inherited = Inherited::capture();
    let done = match cli::help::parse::<Command>() {
        Ok(command) => carry_out(command, inherited),
        Err(help) if !help.use_stderr() => {
            output::printed(help.print()).map(|()| ExitCode::SUCCESS)
        }
        Err(mistake) => return failure::mistake(&mistake),
    };
    done.unwrap_or_else(failure::report)
}

fn carry_out(command: Command, inherited: Inherited) -> anyhow::Result<ExitCode> {
    match command {
        Command::Layer(args) => return layers::lay(&args),
        Command::Bench(args) => measure::run(args.what)?,
        Command::Worker { task } => task.run()?,
        Command::Hold(args) => revoke::hold(&args)?,
        Command::RevokeOnce(args) => revoke::once(args, inherited)?.leave(),
    }
    Ok(ExitCode::SUCCESS)
}
