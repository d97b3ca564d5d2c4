//! `dewar policy`: profiles and the policies that they stand for.

use crate::{output, surroundings};
use clap::{Args, Subcommand};
use profile::{Compiled, EndpointRule, PathRights, Source, load, shipped};
use std::{fmt::Write as _, path::PathBuf};

const SHOW_EXAMPLES: &str = "\
Examples:
  dewar policy show workspace            who may do what where
  dewar policy show --cil ./build.toml   the policy in CIL; `secilc` reads it, too
  dewar policy show --cil --origins -p agent | grep github_com

Exit status: 0, or 2 for a mistake in the profile.";

/// Show and check profiles, and the policies that they stand for.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the shipped profiles.
    List,
    Show(ShowArgs),
    Check(CheckArgs),
}

/// Show what a profile grants.
///
/// Prints, for each domain, what it may do with which files and which hosts it reaches; with --cil, the
/// type-enforcement policy itself.
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct ShowArgs {
    /// Profile: the name of a shipped one or a file
    #[arg(value_name = "PROFILE", default_value = "workspace")]
    profile: String,

    /// Print the policy in CIL
    #[arg(long)]
    cil: bool,

    /// Append to each rule the place in the profile that it comes from
    #[arg(long, requires = "cil")]
    origins: bool,

    /// Resolve host names, as a run does
    #[arg(long)]
    resolve: bool,

    /// The directory that `${workspace}` stands for [default: the working directory]
    #[arg(short, long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

/// Check profiles; say nothing if they are good.
///
/// Reports every mistake with its place and with what to write instead. Exit status: 0, or 2 if there is one.
#[derive(Debug, Args)]
struct CheckArgs {
    /// Profiles: names of shipped ones, or files
    #[arg(value_name = "PROFILE", required = true)]
    profiles: Vec<String>,
}

/// Carries out `dewar policy`.
pub(crate) fn run(args: &PolicyArgs) -> anyhow::Result<()> {
    match &args.action {
        Action::List => Ok(output::print(list()?.as_bytes())?),
        Action::Show(args) => show(args),
        Action::Check(args) => {
            args.profiles.iter().try_for_each(|name| compile(name, None, false).map(drop))
        }
    }
}

/// A profile under the variables of this machine. Without `resolve`, names of hosts stay names.
fn compile(name: &str, workspace: Option<&PathBuf>, resolve: bool) -> anyhow::Result<Compiled> {
    let variables = surroundings::variables(workspace.map(PathBuf::as_path), "/tmp".into())?;
    let source = Source::from_argument(name);
    let compiled = if resolve {
        load(&source, &variables, &mut surroundings::resolve)
    } else {
        load(&source, &variables, &mut |_| Ok(Vec::new()))
    };
    Ok(compiled?)
}

fn list() -> anyhow::Result<String> {
    let mut text = String::new();
    for (name, _) in shipped() {
        let description = compile(name, None, false)?.description.unwrap_or_default();
        writeln!(text, "{name:12}{description}")?;
    }
    Ok(text)
}

fn show(args: &ShowArgs) -> anyhow::Result<()> {
    let compiled = compile(&args.profile, args.workspace.as_ref(), args.resolve)?;
    let text = match (args.cil, args.origins) {
        (true, true) => with_origins(&compiled),
        (true, false) => compiled.cil,
        _ => summary(&compiled)?,
    };
    Ok(output::print(text.as_bytes())?)
}

/// The policy with the place of each rule behind it.
fn with_origins(compiled: &Compiled) -> String {
    let line = |(index, line): (usize, &str)| match compiled.origin(index + 1) {
        Some(origin) => format!("{line}  ; {}:{}: {}\n", origin.file, origin.line, origin.text),
        None => format!("{line}\n"),
    };
    compiled.cil.lines().enumerate().map(line).collect()
}

/// What a profile grants, for people.
fn summary(compiled: &Compiled) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    writeln!(text, "{}", compiled.name)?;
    if let Some(description) = &compiled.description {
        writeln!(text, "  {description}")?;
    }
    for (index, domain) in compiled.domains.iter().enumerate() {
        writeln!(text, "\ndomain {}", domain.name)?;
        for rule in &compiled.paths {
            let path = rule.path.as_ref().map(|path| path.display().to_string());
            let path = path.unwrap_or_else(|| format!("{} (regular expression)", rule.regex));
            writeln!(text, "  {:8}{path}", rights(rule.rights[index]))?;
        }
        for (verb, rules) in [("connect", &domain.connect), ("bind", &domain.bind)] {
            for rule in rules {
                writeln!(text, "  {verb:8}{}", endpoint(compiled, rule))?;
            }
        }
        for capability in &domain.capabilities {
            writeln!(text, "  keeps   capability {capability}")?;
        }
    }
    Ok(text)
}

fn rights(rights: PathRights) -> String {
    if rights.hidden {
        return "hidden".to_owned();
    }
    let letters = [(rights.read, 'r'), (rights.write, 'w'), (rights.exec, 'x')];
    let text: String = letters.iter().filter(|(granted, _)| *granted).map(|(_, l)| *l).collect();
    if text.is_empty() { "denied".to_owned() } else { text }
}

fn endpoint(compiled: &Compiled, rule: &EndpointRule) -> String {
    let host = &compiled.hosts[rule.host];
    let ports = match (rule.low, rule.high) {
        (0, u16::MAX) => "*".to_owned(),
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low}-{high}"),
    };
    let protocol = format!("{:?}", rule.protocol).to_lowercase();
    let because =
        host.error.as_ref().map_or(String::new(), |error| format!(" (no address: {error})"));
    format!("{}:{ports}/{protocol}{because}", host.host)
}
