//! `dewar bench releases`: two programs `dewar` compared.

use crate::{
    measure::{aim, dewar_at, medium, worker},
    resolution, show,
};
use anyhow::Context as _;
use bench::{config::Kind, sample, study::Conditions};
use cli::{args::bench::ReleasesArgs, failure::Usage, output};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// So many percent more decisions are a regression.
const MORE: f64 = 1.0;

/// Compares, and prints what was asked for.
pub(crate) fn run(args: &ReleasesArgs) -> anyhow::Result<()> {
    if args.count {
        return count(args);
    }
    let [old, new] = [&args.old, &args.new].map(|program| program.canonicalize());
    let found = |found: std::io::Result<PathBuf>, program: &Path| {
        found.map_err(|error| Usage(format!("cannot find `{}`: {error}", program.display())))
    };
    let (old, new) = (found(old, &args.old)?, found(new, &args.new)?);
    let all = ["--mode", "all"];
    let configs = vec![
        dewar_at(&old, "old", Kind::Base, &all, &args.old.display().to_string())?,
        dewar_at(&new, "new", Kind::Dewar, &all, &args.new.display().to_string())?,
    ];
    let conditions = Conditions {
        configs,
        worker: worker()?,
        medium: medium(&args.measure),
        aim: aim(&args.measure),
    };
    let mut studies = [conditions.build()?, conditions.walk()?, conditions.start()?];
    for study in &mut studies {
        study.experiment.name = format!("releases-{}", study.experiment.name);
    }
    let outcomes = show::studies(studies, &args.measure.show)?;
    output::document(&args.measure.show, &outcomes)
}

/// Decisions are counted, not timed: the same on every machine.
fn count(args: &ReleasesArgs) -> anyhow::Result<()> {
    let [old, new] = [of(&args.old)?, of(&args.new)?];
    println!("decisions of a build: old {old}, new {new}");
    let limit = old as f64 * (1.0 + MORE / 100.0);
    anyhow::ensure!(
        new as f64 <= limit,
        "the new program asks for more than {MORE} % more decisions"
    );
    Ok(())
}

fn of(program: &Path) -> anyhow::Result<u64> {
    let workspace = tempfile::tempdir().context("cannot make a workspace")?;
    sample::write(workspace.path())?;
    let program =
        program.canonicalize().with_context(|| format!("cannot find `{}`", program.display()))?;
    let mut command = Command::new(program);
    command.args(["run", "--no-daemon", "--json", "--mode", "all", "--", "make", "-s"]);
    command.current_dir(workspace.path());
    Ok(resolution::decisions(command)?.iter().map(|row| row.queries).sum())
}
