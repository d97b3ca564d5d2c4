//! The `dewar` command. See `dewar --help`.
#![forbid(unsafe_code)]

mod amend;
mod audit;
mod bench;
mod cli;
mod completions;
mod control;
mod daemon;
mod doctor;
mod explain;
mod failure;
mod grant;
mod man;
mod output;
mod plugin;
mod policy;
mod ps;
mod receipt;
mod revoke;
mod run;
mod surroundings;
mod top;

use clap::Parser as _;
use cli::{Cli, Command};
use monitor::launch::Inherited;
use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: descriptors that Dewar opens itself are not the command's.
    let inherited = Inherited::capture();
    let done = match Cli::try_parse() {
        Ok(cli) => dispatch(cli.command, inherited),
        Err(help) if !help.use_stderr() => output::printed(help.print()),
        Err(mistake) => mistake.exit(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(error),
    }
}

fn dispatch(command: Command, inherited: Inherited) -> anyhow::Result<()> {
    match command {
        Command::Run(args) => run::run(&args.into(), inherited)?.leave(),
        Command::Ps(args) => ps::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Revoke(args) => revoke::run(&args),
        Command::Grant(args) => grant::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Policy(args) => policy::run(&args),
        Command::Plugin(args) => plugin::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Daemon(args) => daemon::run(&args),
        Command::Bench(args) => bench::run(args, inherited),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}
