//! `dewar bench run`: the price of Dewar for a command, layer by layer.

use crate::{
    dearest,
    measure::{aim, dewar, medium, shell, worker},
    show,
};
use anyhow::Context as _;
use bench::{
    config::{Config, Kind, WORKSPACE},
    figure::{Bar, Drawing, Figure},
    pairs::{ExperimentResult, show::slowdown},
    peers,
    report::Section,
    sheet::{Cell, Sheet},
    study::Conditions,
};
use clap::Args;
use cli::args::bench::RunLayersArgs;
use profile::{Documents, Source};
use std::{ffi::OsString, process::ExitCode};

/// Layers around a command.
#[derive(Debug, Args)]
pub(crate) struct LayerArgs {
    /// Landlock
    #[arg(long)]
    envelope: bool,
    /// A filter
    #[arg(long)]
    filter: bool,
    /// Notifications that continue
    #[arg(long)]
    notified: bool,
    /// The workspace
    workspace: std::path::PathBuf,
    /// The command
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// Lays layers and becomes the command.
pub(crate) fn lay(args: &LayerArgs) -> anyhow::Result<ExitCode> {
    let LayerArgs { envelope, filter, notified, .. } = *args;
    let layers = bench::layer::Layers { envelope, filter, notified };
    let status = bench::layer::run(layers, &args.workspace, &args.command);
    Ok(ExitCode::from(status.context("cannot lay a layer")?))
}

/// Native, then one layer more each time.
fn configs(profile: &str, trail: &str) -> anyhow::Result<Vec<Config>> {
    let own = std::env::current_exe().context("cannot tell which program this is")?;
    let own = own.to_str().context("the path of this program is not Unicode")?;
    let unshare = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        "--ipc",
        "--uts",
        "--net",
        "--cgroup",
        "--kill-child",
        "--",
    ];
    let mut configs = vec![
        Config::native(),
        Config::new(
            "+ namespaces",
            Kind::Peer,
            &unshare,
            "user, mount, pid, ipc, uts, net, cgroup",
        ),
    ];
    let view = peers::found().into_iter().find(|peer| peer.name == "bwrap");
    let view: Vec<String> =
        view.map_or_else(|| unshare.map(str::to_owned).to_vec(), |it| it.prefix);
    let view: Vec<&str> = view.iter().map(String::as_str).collect();
    configs.push(Config::new(
        "+ view",
        Kind::Peer,
        &view,
        "the system read-only, a private /tmp (by bubblewrap)",
    ));
    for (name, flags, what) in [
        ("+ envelope", &["--envelope"][..], "Landlock"),
        ("+ filter", &["--envelope", "--filter"], "a filter that lets every call run"),
        (
            "+ notified",
            &["--envelope", "--filter", "--notified"],
            "notifications that continue at once",
        ),
    ] {
        let layer =
            [own, "layer"].into_iter().chain(flags.iter().copied()).chain([WORKSPACE, "--"]);
        let prefix: Vec<&str> = view.iter().copied().chain(layer).collect();
        configs.push(Config::new(name, Kind::Peer, &prefix, what));
    }
    let run = |flags| with_profile(profile, flags);
    configs.push(dewar(
        "dewar, off",
        Kind::Base,
        &run(&["all", "--enforce", "off"]),
        "Dewar, nothing decided",
    )?);
    configs.push(dewar("+ decisions", Kind::Dewar, &run(&["all"]), "Dewar, mode all")?);
    let flags = ["all", "--audit", trail];
    let journal = run(&flags);
    configs.push(dewar(
        "+ journal",
        Kind::Dewar,
        &journal,
        "Dewar, mode all, every decision written",
    )?);
    configs.push(dewar(
        "mode fast",
        Kind::Dewar,
        &run(&["fast"]),
        "Dewar, reads left to the envelope",
    )?);
    Ok(configs)
}

fn with_profile<'a>(profile: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    [&["--profile", profile, "--mode"], flags].concat()
}

/// Measures, and prints what was asked for.
pub(crate) fn run(args: &RunLayersArgs) -> anyhow::Result<()> {
    // Else every row of Dewar's would say why not, after minutes.
    Documents::read(&Source::from_argument(&args.profile))?;
    let place = tempfile::tempdir().context("cannot make a directory")?;
    let trail = place.path().join("trail.jsonl");
    let conditions = Conditions {
        configs: configs(
            &args.profile,
            trail.to_str().context("the temporary directory is not Unicode")?,
        )?,
        worker: worker()?,
        medium: medium(&args.measure),
        aim: aim(&args.measure),
    };
    let undo = args.undo.as_deref().map_or_else(Vec::new, shell);
    let study = conditions.layers(&args.command, &undo)?;
    let outcome = show::measure(study, &args.measure.show)?;
    if !show::is_measured(&outcome) {
        // The rows say why.
        show::sheets(&outcome.sheets(), &outcome, &args.measure.show)?;
        anyhow::bail!("nothing could be measured");
    }
    let mut sheets = outcome.sheets();
    sheets.push(steps(&outcome));
    let mut headline = headline(&outcome);
    match dearest::of_command(&args.profile, &args.command, &undo) {
        Ok(found) => {
            sheets.extend(found.sheets);
            if let Some(first) = found.shares.first() {
                headline += &format!(" {}.", first.said());
            }
        }
        Err(error) => sheets.push(Sheet {
            title: "Where decisions were found".to_owned(),
            notes: vec![format!("not known: {error:#}")],
            ..Sheet::default()
        }),
    }
    // What is to be done about the price stands first.
    if let Some(first) = sheets.first_mut() {
        first.notes.insert(0, headline.clone());
    }
    let mut section = Section::new("run-layers", &outcome.experiment.title, headline, sheets);
    section.figures.push(waterfall(&outcome));
    show::keep(&section, &args.measure.show)?;
    show::sheets(&section.sheets, &outcome, &args.measure.show)
}

/// The settings that build on each other; mode `fast` stands beside them.
fn chain(outcome: &ExperimentResult) -> impl Iterator<Item = &bench::pairs::Row> {
    outcome.rows.iter().filter(|row| outcome.setting(row) != "mode fast" && row.setting > 0)
}

fn steps(outcome: &ExperimentResult) -> Sheet {
    let mut sheet = Sheet::new(
        "Each step's share",
        &[
            ("step", 0, false),
            ("step adds", 0, true),
            ("sum", 0, true),
            ("95 % of the sum", 1, true),
        ],
    );
    let mut before = 1.0;
    for row in chain(outcome) {
        let name = Cell::from(outcome.setting(row));
        let Some(wall) = &row.wall else {
            sheet.push(vec![name, "–".into(), "–".into(), Cell::empty()]);
            continue;
        };
        let adds = (wall.ratio - before) * 100.0;
        let interval =
            format!("{:+.1} … {:+.1}", (wall.low - 1.0) * 100.0, (wall.high - 1.0) * 100.0);
        sheet.push(vec![
            name,
            Cell::number(format!("{adds:+.1}"), adds),
            Cell::number(slowdown(wall.ratio), wall.ratio),
            interval.into(),
        ]);
        before = wall.ratio;
    }
    sheet.notes.push(
        "Steps add percent of native. Up to “notified” they are laid by this benchmark as Dewar lays them; a step smaller \
         than the intervals beside it is not shown by these figures."
            .to_owned(),
    );
    sheet
}

fn waterfall(outcome: &ExperimentResult) -> Figure {
    let bar = |row: &bench::pairs::Row| {
        let wall = row.wall.as_ref()?;
        let name = outcome.setting(row).to_owned();
        Some(Bar { group: String::new(), name, value: wall.ratio, low: wall.low, high: wall.high })
    };
    Figure {
        title: "What each layer adds".to_owned(),
        description: "Each bar begins where the one above it ends.".to_owned(),
        drawing: Drawing::Waterfall(chain(outcome).filter_map(bar).collect()),
    }
}

const LEFT_OUT: &str = "Starting Dewar is left out; `dewar bench start` measures it.";

fn headline(outcome: &ExperimentResult) -> String {
    let of = |name: &str| {
        let row = outcome.rows.iter().find(|row| outcome.setting(row) == name)?;
        Some((row.wall.as_ref()?.ratio, row.verdict()))
    };
    if let Some(told) = outcome.unbelievable() {
        return told;
    }
    let (all, fast) = (of("+ decisions"), of("mode fast"));
    if all.is_none() && fast.is_none() {
        return format!(
            "What Dewar costs this command cannot be told of so few rounds. {LEFT_OUT}"
        );
    }
    let said = |found: Option<(f64, bench::pairs::Verdict)>| match found {
        Some((_, verdict @ bench::pairs::Verdict::NoDifference { .. })) => {
            bench::pairs::show::verdict(verdict)
        }
        Some((ratio, _)) => slowdown(ratio),
        None => "not measured".to_owned(),
    };
    let mut text = format!(
        "Dewar costs this command {} in mode `all`, {} in mode `fast`",
        said(all),
        said(fast)
    );
    if let (Some((all, _)), Some((fast, _))) = (all, fast) {
        text += &format!(
            "; `mode = \"fast\"` would save {:.1} percent of native",
            (all - fast) * 100.0
        );
    }
    format!("{text}. {LEFT_OUT}")
}
