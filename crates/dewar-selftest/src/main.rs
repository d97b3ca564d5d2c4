//! `dewar selftest`: does the wall hold?
#![forbid(unsafe_code)]

mod list;
mod table;
mod tried;

use anyhow::{Context as _, bail};
use clap::Parser;
use cli::{
    args::{
        SelftestArgs,
        selftest::{ModeName, What},
    },
    failure::{self, Usage},
    output, program,
};
use selftest::{
    case::Case,
    cases,
    session::{Session, SessionError},
    wall::{Dewar, PEERS, Peer, Wall},
};
use std::{
    io::{IsTerminal as _, stderr},
    process::ExitCode,
};
use tried::Tried;

/// Ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// The part of the command line that this program carries out, and what it calls itself by.
#[derive(Debug, Parser)]
#[command(name = "dewar", bin_name = "dewar", version)]
enum Command {
    Selftest(SelftestArgs),
}

fn main() -> ExitCode {
    if selftest::is_attack(std::env::args_os()) {
        return selftest::run_attack();
    }
    let done = match cli::help::parse::<Command>() {
        Ok(Command::Selftest(args)) => carry_out(&args),
        Err(help) if !help.use_stderr() => {
            output::printed(help.print()).map(|()| ExitCode::SUCCESS)
        }
        Err(mistake) => return failure::mistake(&mistake),
    };
    done.unwrap_or_else(|error| {
        if matches!(error.downcast_ref(), Some(SessionError::Interrupted)) {
            output::tell_line(format_args!("dewar: {error}"));
            return ExitCode::from(INTERRUPTED);
        }
        failure::report(error)
    })
}

fn carry_out(args: &SelftestArgs) -> anyhow::Result<ExitCode> {
    match &args.what {
        Some(What::List { json }) => list::all(*json)?,
        Some(What::Explain { case }) => list::one(find(case)?)?,
        None => return attack(args),
    }
    Ok(ExitCode::SUCCESS)
}

fn find(name: &str) -> anyhow::Result<&'static Case> {
    let unknown = || Usage(format!("no case is called `{name}`; `dewar selftest list` names them"));
    Ok(cases::find(name).ok_or_else(unknown)?)
}

/// Runs the cases behind the walls, and prints what came of it.
fn attack(args: &SelftestArgs) -> anyhow::Result<ExitCode> {
    let chosen = args.cases.iter().map(|name| find(name));
    let mut chosen = chosen.collect::<anyhow::Result<Vec<_>>>()?;
    if chosen.is_empty() {
        chosen = cases::all().collect();
    }
    let walls = walls(args)?;
    let mut gives = Vec::new();
    for wall in &walls {
        if let Wall::Dewar(dewar) = wall {
            gives = accepts(dewar)?;
        }
    }
    let mut session = Session::begin(&std::env::current_exe()?)?;
    let shown = stderr().is_terminal();
    let mut tried = Tried { gives, ..Tried::new(&args.profile, &walls) };
    for (n, case) in chosen.iter().enumerate() {
        if shown {
            eprint!("\r\x1b[K{}/{} {}", n + 1, chosen.len(), case.name);
        }
        let verdicts = walls.iter().map(|wall| session.run(case, wall));
        let verdicts = verdicts.collect::<Result<Vec<_>, _>>();
        if verdicts.is_err() && shown {
            eprint!("\r\x1b[K");
        }
        tried.add(case, verdicts?);
    }
    if shown {
        eprint!("\r\x1b[K");
    }
    let text = if args.json {
        output::json(&tried)?
    } else if args.markdown {
        table::markdown(&tried)
    } else {
        table::terminal(&tried, &args.profile)
    };
    output::print(text.as_bytes())?;
    if let Some(why) = tried.nothing_tried() {
        output::tell_line(format_args!("dewar: nothing could be tried: {why}"));
        return Ok(ExitCode::from(failure::SETUP));
    }
    Ok(ExitCode::from(if tried.got_through() { failure::FAILED } else { 0 }))
}

/// Insists that Dewar would start anything as it is asked to: else every case would say why not.
/// Returns what the profile gives outside, by services that act for whoever connects: no case asks
/// those of the machine for anything.
fn accepts(dewar: &Dewar) -> anyhow::Result<Vec<String>> {
    let mut dry = std::process::Command::new(&dewar.program);
    dry.args(["run", "--dry-run", "--profile", &dewar.profile, "--mode", dewar.mode]);
    // As the cases are started: with little of this environment.
    let kept = ["HOME", "PATH", "USER"].into_iter();
    dry.env_clear().envs(kept.filter_map(|name| Some((name, std::env::var_os(name)?))));
    // Each case makes a workspace of its own; this one is only named.
    dry.args(["--workspace", "/var/lib"]);
    for layer in &dewar.without {
        dry.args(["--without", layer]);
    }
    let said = dry.args(["--", "true"]).output().context("cannot start `dewar`")?;
    if said.status.code() == Some(i32::from(failure::USAGE)) {
        let why = String::from_utf8_lossy(&said.stderr);
        bail!(Usage(why.trim_end().trim_start_matches("dewar: ").to_owned()));
    }
    let laid = String::from_utf8_lossy(&said.stdout);
    let gives = laid.lines().filter_map(|line| line.trim_start().strip_prefix("GIVES"));
    Ok(gives.map(|gives| gives.trim().to_owned()).collect())
}

/// First none, then Dewar, then the others.
fn walls(args: &SelftestArgs) -> anyhow::Result<Vec<Wall>> {
    let mode = match args.mode {
        ModeName::All => "all",
        ModeName::Fast => "fast",
    };
    let dewar = Dewar {
        program: program::beside("dewar")?,
        profile: profile(&args.profile)?,
        mode,
        without: args.without.clone(),
    };
    let mut walls = vec![Wall::Off, Wall::Dewar(dewar)];
    for name in args.against.iter().filter(|name| *name != "none") {
        let names = PEERS.iter().map(|peer| peer.name).collect::<Vec<_>>().join(", ");
        let unknown = || Usage(format!("no tool is known by the name `{name}`; there are {names}"));
        let peer = Peer::find(name).ok_or_else(unknown)?;
        if peer.program().is_none() {
            let what = "is not on this machine; docs/selftest.md says how to install it";
            return Err(Usage(format!("`{name}` {what}")).into());
        }
        walls.push(Wall::Peer(peer));
    }
    Ok(walls)
}

/// A profile as `dewar run` takes it, wherever that is called.
fn profile(name: &str) -> anyhow::Result<String> {
    if !name.contains('/') && !name.ends_with(".toml") {
        return Ok(name.to_owned());
    }
    let missing = |error| Usage(format!("profile `{name}`: {error}"));
    Ok(std::fs::canonicalize(name).map_err(missing)?.display().to_string())
}
