//! `dewar plugin` and `dewar bench plugin`: the commands that need compilers.
#![forbid(unsafe_code)]

mod build;
mod disasm;
mod host;
mod list;
mod measure;
mod run;
mod server;
mod source;
mod target;
mod test;

use clap::Parser;
use cli::{
    args::{BenchArgs, PluginArgs, bench::What, plugin},
    failure, output, program,
};
use ecode::CompileErrors;
use std::process::ExitCode;

/// The part of the command line that this program carries out.
#[derive(Debug, Parser)]
#[command(name = "dewar", bin_name = "dewar", version)]
enum Command {
    Plugin(PluginArgs),
    Bench(BenchArgs),
}

fn main() -> ExitCode {
    let done = match cli::help::parse::<Command>() {
        Ok(Command::Plugin(args)) => carry_out(&args.command),
        Ok(Command::Bench(args)) => benchmark(&args),
        Err(help) if !help.use_stderr() => output::printed(help.print()),
        Err(mistake) => return failure::mistake(&mistake),
    };
    done.map_or_else(report, |()| ExitCode::SUCCESS)
}

fn carry_out(command: &plugin::Command) -> anyhow::Result<()> {
    match command {
        plugin::Command::Build(args) => build::run(args),
        plugin::Command::Run(args) => run::run(args),
        plugin::Command::Test(args) => test::run(args),
        plugin::Command::List(args) => list::run(args),
        plugin::Command::Load(args) => server::load(args),
        plugin::Command::Replace(args) => server::replace(args),
        plugin::Command::Unload(args) => server::unload(args),
        plugin::Command::Stats(args) => server::stats(args),
        plugin::Command::Disasm(args) => disasm::run(args),
    }
}

fn benchmark(args: &BenchArgs) -> anyhow::Result<()> {
    match &args.what {
        What::Plugin(args) => measure::run(args),
        _ => Err(program::become_helper("dewar-bench")),
    }
}

/// Mistakes in a plugin's text are shown with their places.
fn report(error: anyhow::Error) -> ExitCode {
    match error.downcast::<CompileErrors>() {
        Ok(errors) => {
            let shown = errors.messages.into_iter().map(failure::diagnose);
            shown.last().unwrap_or(failure::USAGE.into())
        }
        Err(error) => failure::report(error),
    }
}
