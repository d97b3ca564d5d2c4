//! The `dewar` command. See `dewar --help`.
#![forbid(unsafe_code)]

mod allow;
mod amend;
mod ask;
mod changed;
mod commands;
mod completions;
mod control;
mod doctor;
mod environment;
mod explain;
mod fitting;
mod grant;
mod groups;
mod init;
mod kept;
mod learn;
mod machine;
mod man;
mod policy;
mod proposal;
mod ps;
mod receipt;
mod report;
mod revoke;
mod run;
mod schema;
#[cfg(test)]
mod screens;
mod top;
mod trust;

use clap::{CommandFactory as _, FromArgMatches as _};
use cli::{
    args::bench::{BenchArgs, What},
    failure, output, program,
};
use commands::{Command, Dewar};
use confine::launch::Inherited;
use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: descriptors that Dewar opens itself are not the command's.
    let inherited = Inherited::capture();
    let done = match parse() {
        Ok(Asked::Schema(text)) => output::print(text.as_bytes()).map_err(anyhow::Error::from),
        Ok(Asked::Command(command)) => dispatch(command, inherited),
        Err(help) if !help.use_stderr() => output::printed(help.print()),
        Err(mistake) => return failure::mistake(&mistake),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(error),
    }
}

/// What the command line asks for.
enum Asked {
    Command(Command),
    /// The schema of what a command prints.
    Schema(&'static str),
}

fn parse() -> Result<Asked, clap::Error> {
    if let Some(text) = schema::asked(Dewar::command(), std::env::args_os().skip(1)) {
        return Ok(Asked::Schema(text));
    }
    let matches = schema::offered(Dewar::command()).try_get_matches()?;
    Ok(Asked::Command(Dewar::from_arg_matches(&matches)?.command))
}

fn dispatch(command: Command, inherited: Inherited) -> anyhow::Result<()> {
    match command {
        Command::Run(args) if args.learns() => std::process::exit(learn::run(&args.into())?),
        Command::Run(args) => run::run(&args.into(), inherited)?.leave(),
        Command::Runs(args) => kept::run(&args),
        Command::Ps(args) => ps::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Revoke(args) => revoke::run(&args),
        Command::Grant(args) => grant::run(&args),
        Command::Learn(args) => std::process::exit(learn::run(&args)?),
        Command::Init(args) => init::run(&args),
        Command::Ask(args) => ask::run(&args),
        Command::Allow(args) => allow::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Trust(args) => trust::run(&args),
        Command::Policy(args) => policy::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Audit(_) | Command::Daemon(_) => Err(program::become_helper("dewar-daemon")),
        Command::Bench(BenchArgs { what: What::Plugin(_) }) => {
            Err(program::become_helper("dewar-plugin"))
        }
        Command::Bench(_) => Err(program::become_helper("dewar-bench")),
        Command::Plugin(_) => Err(program::become_helper("dewar-plugin")),
        Command::Selftest(_) => Err(program::become_helper("dewar-selftest")),
        Command::Mcp(_) => Err(program::become_helper("dewar-mcp")),
        Command::Serve(_) => Err(program::become_helper("dewar-serve")),
    }
}
