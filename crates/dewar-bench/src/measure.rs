//! `dewar bench`: what protection costs here.

use crate::{
    calls, kernel, layers, library, releases, report, resolution, revoke, show, trust, web,
};
use anyhow::Context as _;
use bench::{
    calls::Subject,
    config::{Config, Kind, WORKSPACE},
    harden::{Build, Compiler, HardenReport, stopped},
    medium::Medium,
    pairs::Aim,
    peers,
    report::Section,
    sample,
    study::Conditions,
    worker::Worker,
};
use cli::{
    args::bench::{BuildArgs, HardenArgs, MeasureArgs, ProjectArgs, What},
    failure::Usage,
    output, program,
};
use std::{env, path::Path};

/// Carries out `dewar bench`.
pub(crate) fn run(what: What) -> anyhow::Result<()> {
    match what {
        What::Build(args) => build(&args),
        What::Project(args) => project(&args),
        What::Run(args) => layers::run(&args),
        What::Syscalls(args) => syscalls(&args),
        What::Walk(args) => show::study(conditions(&args)?.walk()?, &args.show).map(drop),
        What::Start(args) => show::study(conditions(&args)?.start()?, &args.show).map(drop),
        What::Unix(args) => unix(&args),
        What::Harden(args) => harden(&args),
        What::Kernel(args) => kernel::run(&args),
        What::Itself(args) => {
            show::study(conditions(&args)?.against_itself()?, &args.show).map(drop)
        }
        What::Trust(args) => trust::run(&args),
        What::Resolution(args) => resolution::run(&args),
        What::Releases(args) => releases::run(&args),
        What::Report(args) => report::run(&args),
        What::Plugin(_) => Err(program::become_helper("dewar-plugin")),
        What::Ipc(args) => calls::run(Subject::Calls, &args),
        What::Decision(args) => calls::run(Subject::Decisions, &args),
        What::Library(args) => library::run(&args),
        What::Revoke(args) => revoke::run(&args),
        What::Web(args) => web::run(&args),
        What::Sample { directory } => (sample::files().iter())
            .try_for_each(|file| output::keep(&directory, &file.name, &file.text)),
    }
}

fn build(args: &BuildArgs) -> anyhow::Result<()> {
    let conditions = conditions(&args.measure)?;
    let study = if args.command.is_empty() {
        conditions.build()?
    } else {
        let words: Vec<String> =
            args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let undo = args.undo.as_ref().map(|undo| undo.to_string_lossy().into_owned());
        conditions.command(&words, &undo.map_or_else(Vec::new, |undo| shell(&undo)))?
    };
    show::study(study, &args.measure.show).map(drop)
}

fn project(args: &ProjectArgs) -> anyhow::Result<()> {
    let sources = match &args.sources {
        Some(sources) => sources.clone(),
        None => kernel::cache()?.join("project"),
    };
    if args.fetch {
        bench::progress::note("fetching the sources of Lua, zlib and SQLite from Debian");
        bench::project::fetch(&sources)?;
        bench::progress::clear();
    }
    if bench::project::sources(&sources).is_empty() {
        return Err(bench::project::ProjectError::Missing(sources).into());
    }
    let mut conditions = conditions(&args.measure)?;
    conditions.configs.retain(|config| !config.name.starts_with("only "));
    show::study(conditions.project(&sources)?, &args.measure.show).map(drop)
}

/// The words by which a shell runs a line.
pub(crate) fn shell(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).to_vec()
}

/// The program of runners: this one.
pub(crate) fn worker() -> anyhow::Result<Worker> {
    let program = env::current_exe().context("cannot tell which program this is")?;
    Ok(Worker { program, arguments: vec!["worker".into()] })
}

/// The program `dewar` beside this one, with these flags, on the workspace.
pub(crate) fn dewar(
    name: &str,
    kind: Kind,
    flags: &[&str],
    description: &str,
) -> anyhow::Result<Config> {
    dewar_at(&program::beside("dewar")?, name, kind, flags, description)
}

/// A program `dewar`, with these flags, on the workspace.
pub(crate) fn dewar_at(
    program: &Path,
    name: &str,
    kind: Kind,
    flags: &[&str],
    description: &str,
) -> anyhow::Result<Config> {
    let program = program.to_str().context("the path of `dewar` is not Unicode")?;
    let prefix = [&[program, "run", "--no-daemon", "--workspace", WORKSPACE], flags, &["--"]];
    Ok(Config::new(name, kind, &prefix.concat(), description))
}

/// Native, Dewar in every configuration that is worth a row, and the tools that are found here.
fn configs(args: &MeasureArgs) -> anyhow::Result<Vec<Config>> {
    let all = ["--mode", "all"];
    let only = |manager| [&all[..], &["--enforce", manager]].concat();
    let mut configs = vec![
        Config::native(),
        dewar("base", Kind::Base, &only("off"), "same launch, same interposition, no decisions")?,
        dewar("dewar all", Kind::Dewar, &all, "every open and exec decided")?,
        dewar("dewar fast", Kind::Dewar, &["--mode", "fast"], "reads left to the envelope")?,
        dewar("only files", Kind::Dewar, &only("files"), "the other object managers pass")?,
        dewar("only processes", Kind::Dewar, &only("processes"), "the other object managers pass")?,
        dewar("only sockets", Kind::Dewar, &only("sockets"), "the other object managers pass")?,
    ];
    if !args.no_peers {
        configs.extend(peers::found());
    }
    chosen(configs, &args.only)
}

/// Native and the settings that are asked for; all of them if none is.
fn chosen(mut configs: Vec<Config>, only: &[String]) -> anyhow::Result<Vec<Config>> {
    if let Some(wrong) = only.iter().find(|name| configs.iter().all(|it| it.name != **name)) {
        let names: Vec<&str> = configs.iter().map(|it| it.name.as_str()).collect();
        let names = names.join(", ");
        anyhow::bail!(Usage(format!("there is no setting `{wrong}`; take one of: {names}")));
    }
    configs.retain(|config| {
        only.is_empty() || config.kind == Kind::Native || only.contains(&config.name)
    });
    Ok(configs)
}

/// When it is enough.
pub(crate) fn aim(args: &MeasureArgs) -> Aim {
    Aim {
        half_width: args.within / 100.0,
        budget_s: args.budget * 60.0,
        most: args.rounds.map(|rounds| rounds as usize),
        ..Aim::default()
    }
}

/// Where workspaces lie.
pub(crate) fn medium(args: &MeasureArgs) -> Medium {
    if args.no_disk { Medium::memory() } else { Medium::disk() }
}

fn conditions(args: &MeasureArgs) -> anyhow::Result<Conditions> {
    let (configs, worker) = (configs(args)?, worker()?);
    Ok(Conditions { configs, worker, medium: medium(args), aim: aim(args) })
}

/// The share of the time of `bench harden` that the sample application has.
const SAMPLE_SHARE: f64 = 0.3;

/// Profiles with a second domain: one that nobody enters, and one that what is measured enters, so
/// that every process has a label of its own to be found.
const DOMAINS: [(&str, &str, &str); 2] = [
    ("two domains", "/usr/bin/other", "as `dewar all`, in a policy with two domains, all in one"),
    ("labelled", "${workspace}/worker", "as `dewar all`, with processes in two domains"),
];

fn syscalls(args: &MeasureArgs) -> anyhow::Result<()> {
    let profiles = tempfile::tempdir()?;
    let mut conditions = conditions(args)?;
    conditions.configs.retain(|config| !config.name.starts_with("only "));
    if args.only.is_empty() {
        conditions.configs.push(bare_notification()?);
    }
    for (name, program, what) in DOMAINS.iter().filter(|_| args.only.is_empty()) {
        let file = profiles.path().join(format!("{name}.toml"));
        let text = format!("extends = 'workspace'\n[domains.other]\nexec = ['{program}']\n");
        std::fs::write(&file, text)?;
        let profile = file.to_str().context("the temporary directory is not Unicode")?;
        let flags = ["--mode", "all", "-p", profile];
        conditions.configs.push(dewar(name, Kind::Dewar, &flags, what)?);
    }
    show::study(conditions.syscalls()?, &args.show).map(drop)
}

/// The least that deciding can take: opens and the like wait for a process that lets them continue.
fn bare_notification() -> anyhow::Result<Config> {
    let own = env::current_exe().context("cannot tell which program this is")?;
    let own = own.to_str().context("the path of this program is not Unicode")?;
    let what = "opens, execs and what makes or connects wait for a process that lets them continue at once";
    let prefix = [own, "layer", "--notified", WORKSPACE, "--"];
    Ok(Config::new("bare notification", Kind::Peer, &prefix, what))
}

fn unix(args: &MeasureArgs) -> anyhow::Result<()> {
    let mut conditions = conditions(args)?;
    conditions.configs.retain(|config| !config.name.starts_with("only "));
    let mut study = conditions.unix()?;
    study.experiment.notes.push(match bench::peers::is_installed("ubench") {
        true => "UnixBench is installed here; its own figures: `ubench`.".to_owned(),
        false => "UnixBench is not installed here (Debian has no package of it): nothing was compared with it.".to_owned(),
    });
    show::study(study, &args.show).map(drop)
}

fn harden(args: &HardenArgs) -> anyhow::Result<()> {
    let show = &args.measure.show;
    let compilers = Compiler::found();
    anyhow::ensure!(!compilers.is_empty(), "there is no C compiler here; install gcc or clang");
    let directory = tempfile::tempdir()?;
    let sheets = stopped(&compilers, directory.path(), &mut bench::progress::note)?;
    bench::progress::clear();
    let headline = "Each attack was tried for real on programs compiled with each protection; the price is in the chapter before.";
    let section =
        Section::new("attacks", "What protections by compilers stop", headline.to_owned(), sheets);
    show::keep(&section, show)?;
    show::tables(&section.sheets, show)?;
    let mut report = HardenReport { attacks: section, prices: Vec::new() };
    if args.attacks {
        return output::document(show, &report);
    }
    let mut conditions = Conditions {
        configs: vec![Config::native()],
        worker: worker()?,
        medium: Medium::memory(),
        aim: aim(&args.measure),
    };
    let builds = Build::all(&compilers);
    // The sample has two subjects, the suite thirteen.
    let budget = conditions.aim.budget_s;
    conditions.aim.budget_s = budget * SAMPLE_SHARE;
    let sample = conditions.harden_sample(&builds)?;
    conditions.aim.budget_s = budget * (1.0 - SAMPLE_SHARE);
    report.prices = show::studies([sample, conditions.harden(&builds)?], show)?;
    output::document(show, &report)
}
