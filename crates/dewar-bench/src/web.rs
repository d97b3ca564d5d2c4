//! `dewar bench web`.

use crate::show;
use anyhow::Context as _;
use bench::{
    figure::Figure,
    interrupt::Interrupt,
    pairs::Aim,
    progress::{self, Bar},
    report::Section,
    web::{self, GrowthReport, Programs, SoakReport},
};
use cli::{args::bench::WebArgs, failure::Usage, output, program};
use std::{fs, path::Path};

/// Measures, and prints what was asked for.
pub(crate) fn run(args: &WebArgs) -> anyhow::Result<()> {
    if args.install {
        progress::note("installing Apache and nginx");
        web::install()?;
        progress::clear();
    }
    let programs =
        Programs { serve: program::beside("dewar-serve")?, dewar: program::beside("dewar").ok() };
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    // Servers that change to another user must reach their files.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(scratch.path(), permissions).context("cannot share a directory")?;
    if let Some(requests) = args.soak {
        soak(args, &programs, (scratch.path(), requests))
    } else if args.growth {
        growth(args, &programs, scratch.path())
    } else {
        servers(args, &programs, scratch.path())
    }
}

fn servers(args: &WebArgs, programs: &Programs, scratch: &Path) -> anyhow::Result<()> {
    let wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|it| it == name);
    let found = web::found(programs, scratch, &wanted, &mut progress::note)?;
    progress::clear();
    if let Some(wrong) = args.only.iter().find(|name| !found.names.contains(name)) {
        let names = found.names.join(", ");
        anyhow::bail!(Usage(format!("there is no server `{wrong}`; take some of: {names}")));
    }
    for (name, why) in &found.missing {
        eprintln!("dewar bench: {name} is left out: {why}");
    }
    if !found.missing.is_empty() && !args.install {
        eprintln!("dewar bench: as root, --install installs what is missing from Debian");
    }
    anyhow::ensure!(!found.servers.is_empty(), "no server could be started");
    let aim = Aim {
        half_width: args.within / 100.0,
        budget_s: args.budget * 60.0,
        most: args.rounds.map(|rounds| rounds as usize),
        ..Aim::default()
    };
    let raw = show::samples(&args.show, "web.jsonl")?;
    let (interrupt, bar) = (Interrupt::notice()?, Bar::new("web"));
    let shown = &mut |standing: bench::pairs::engine::Standing<'_>| bar.show(standing);
    let report = web::measure(&found, aim, raw, (&interrupt, shown))?;
    drop(bar);
    anyhow::ensure!(!report.is_empty(), "nothing could be measured");
    show::sheets(&report.sheets(), &report, &args.show)?;
    plot(args, &report.figures())
}

fn soak(args: &WebArgs, programs: &Programs, soaked: (&Path, u64)) -> anyhow::Result<()> {
    let interrupt = Interrupt::notice()?;
    let shown = (&interrupt, &mut progress::note as &mut dyn FnMut(&str));
    let report = SoakReport::measure(programs, soaked.0, soaked.1, shown)?;
    progress::clear();
    show::sheets(&[report.sheet()], &report, &args.show)?;
    anyhow::ensure!(report.is_flat(), "its memory grew by {} KiB", report.grown_kib());
    Ok(())
}

fn growth(args: &WebArgs, programs: &Programs, scratch: &Path) -> anyhow::Result<()> {
    let interrupt = Interrupt::notice()?;
    let rounds = args.rounds.unwrap_or(15) as usize;
    let shown = (&interrupt, &mut progress::note as &mut dyn FnMut(&str));
    let report = GrowthReport::measure(programs, scratch, rounds, shown)?;
    progress::clear();
    let title = "The web server as connections, plugins and rules grow";
    let mut section = Section::new("web-growth", title, report.headline(), vec![report.sheet()]);
    section.figures.push(report.figure());
    show::keep(&section, &args.show)?;
    show::sheets(&section.sheets, &report, &args.show)?;
    plot(args, &[("growth".to_owned(), report.figure())])
}

/// Draws figures into the directory that is asked for.
fn plot(args: &WebArgs, figures: &[(String, Figure)]) -> anyhow::Result<()> {
    let Some(directory) = &args.plot else { return Ok(()) };
    for (name, figure) in figures {
        let drawn = match figure.svg(name) {
            Ok(drawn) => drawn,
            Err(bench::plot::PlotError::Empty) => continue,
            Err(error) => return Err(error.into()),
        };
        output::keep(directory, &format!("web-{name}.svg"), &drawn)?;
    }
    Ok(())
}
