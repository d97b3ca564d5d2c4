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
mod entries;
mod environment;
mod explain;
mod fitting;
mod grant;
mod groups;
mod guarded;
mod init;
mod learn;
mod learning;
mod led;
mod machine;
mod man;
mod misplaced;
mod names;
mod past_runs;
mod policy;
mod proposal;
mod ps;
mod reasons;
mod receipt;
mod report;
mod revoke;
mod run;
mod schema;
#[cfg(test)]
mod screens;
mod shell;
mod so_far;
mod top;
mod trust;
mod words;
mod writable_programs;

use clap::{Args as _, CommandFactory as _, FromArgMatches as _};
use cli::{
    args::bench::{BenchArgs, What},
    failure, help, output, program,
};
use commands::{Command, Dewar};
use confine::launch::Inherited;
use run::RunArgs;
use rustix::process::{Resource, getrlimit};
use std::{ffi::OsString, process::ExitCode};

/// The least stack that the commands need, in bytes; 8 MiB are usual.
const STACK: u64 = 256 << 10;

fn main() -> ExitCode {
    if getrlimit(Resource::Stack).current.is_some_and(|stack| stack < STACK) {
        let why = "the limit of the stack is below 256 KiB: raise it (`ulimit -s 8192`)";
        return failure::report(anyhow::anyhow!(why));
    }
    commanded()
}

fn commanded() -> ExitCode {
    // First of all: descriptors that Dewar opens itself are not the command's.
    let inherited = Inherited::capture();
    let done = match parse() {
        Ok(Request::Schema(text)) => output::print(text.as_bytes()).map_err(anyhow::Error::from),
        Ok(Request::Command(command)) => dispatch(*command, inherited),
        Err(help) if !help.use_stderr() => output::printed(help.print()),
        Err(mistake) => match of_program(&mistake) {
            Some(told) => Err(failure::Usage(told).into()),
            None => return failure::mistake(&mistake),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(error),
    }
}

/// What the command line asks for.
enum Request {
    Command(Box<Command>),
    /// The schema of what a command prints.
    Schema(&'static str),
}

fn parse() -> Result<Request, clap::Error> {
    if let Some(text) = schema::asked(Dewar::command(), std::env::args_os().skip(1)) {
        return Ok(Request::Schema(text));
    }
    if let Some(args) = parse_run(std::env::args_os().skip(1)) {
        return Ok(Request::Command(Box::new(Command::Run(args))));
    }
    let matches = help::matches(|| schema::offered(Dewar::command()))?;
    Ok(Request::Command(Box::new(Dewar::from_arg_matches(&matches)?.command)))
}

/// What to write where the name of a program stands in the place of a command.
fn of_program(mistake: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind::InvalidSubcommand, ContextValue};
    let ContextValue::String(name) = mistake.get(InvalidSubcommand)? else { return None };
    let is_first = std::env::args_os().nth(1).is_some_and(|it| it == name.as_str());
    let is_there = || run::found_program(name.as_ref()).is_some();
    (is_first && is_there()).then(|| {
        let name = monitor::visible(name);
        format!("`{name}` is a program, and no command of Dewar's: `dewar run -- {name}` runs it")
    })
}

/// The arguments of a correct `dewar run`. Programs start it in a loop, and of all arguments that
/// there are it needs a twentieth. What is none is parsed among all commands, for its message.
fn parse_run(mut line: impl Iterator<Item = OsString>) -> Option<RunArgs> {
    if line.next()? != "run" {
        return None;
    }
    let command = RunArgs::augment_args(clap::Command::new("dewar run").no_binary_name(true));
    let matches = command.try_get_matches_from(line).ok()?;
    RunArgs::from_arg_matches(&matches).ok()
}

fn dispatch(command: Command, inherited: Inherited) -> anyhow::Result<()> {
    match command {
        Command::Run(args) if args.learns() => std::process::exit(learn::run(&args.into())?),
        Command::Run(args) => run::run(&args.into(), inherited)?.leave(),
        Command::Runs(args) => past_runs::run(&args),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As it is parsed among all commands.
    fn among_all(line: &[&str]) -> Option<String> {
        let line = std::iter::once("dewar").chain(line.iter().copied());
        let matches = schema::offered(Dewar::command()).try_get_matches_from(line).ok()?;
        match Dewar::from_arg_matches(&matches).ok()?.command {
            Command::Run(args) => Some(format!("{args:?}")),
            _ => None,
        }
    }

    #[test]
    fn a_run_that_is_parsed_alone_is_the_run_that_is_parsed_among_all_commands() {
        for line in [
            &["run", "--", "true"][..],
            &["run", "true", "--json-schema"],
            &["run", "-p", "npm+loopback", "--", "npm", "test", "--", "-p"],
            &["run", "-v", "--stats", "--audit", "-", "ls", "--help"],
            &["run", "--without", "net", "--without", "user", "--name", "x", "sh"],
            &["run", "--ask", "--ask-timeout", "5s", "--mode=fast", "--json", "sh", "-c", "run"],
            &["run", "--cil", "a.cil", "--workspace", "/w", "--daemon", "make"],
            &["run", "--learn", "--", "make"],
            &["run", "--learn", "--dry-run", "--", "make"],
            &["run"],
            &["run", "--help"],
            &["run", "--json-schema", "true"],
            &["run", "--no-such-option", "true"],
            &["runs"],
            &["--help", "run"],
            &["ps", "run"],
            &[],
        ] {
            let alone = parse_run(line.iter().map(Into::into)).map(|args| format!("{args:?}"));
            assert_eq!(alone, among_all(line), "{line:?}");
        }
    }
}
