//! `dewar bench plugin`: what plugins cost, from a single call to whole kernels.

mod floor;
mod jobs;
mod kernels;
mod latency;
mod operations;
mod trial;

use bench::{
    interleaved::Interleaved,
    kernels::{Cod, Gcc, Implementation, KERNELS, KernelComparison, KernelReport, LuaJit},
    progress,
    report::Section,
    sheet::Width,
    table::{self, Style},
};
use cli::{
    args::bench::PluginBenchArgs,
    failure::{Failed, Usage},
    output::{self, tell},
};
use operations::OperationReport;
use plugin_host::Target;
use serde::Serialize;
use std::{rc::Rc, time::Duration};
use trial::Trial;

#[derive(Serialize)]
struct Report {
    operations: OperationReport,
    kernels: Option<KernelReport>,
}

/// Carries out `dewar bench plugin`.
pub(crate) fn run(args: &PluginBenchArgs) -> anyhow::Result<()> {
    let batch = Duration::from_millis(args.batch_ms);
    let turns = Interleaved { rounds: args.rounds as usize, batch, seed: 1 };
    let known = KERNELS.map(|kernel| kernel.name);
    if let Some(wrong) = args.kernel.iter().find(|name| !known.contains(&name.as_str())) {
        let known = known.join(", ");
        return Err(Usage(format!("there is no kernel `{wrong}`; take some of: {known}")).into());
    }
    progress::note("single operations");
    let operations = operations::measure(turns)?;
    let kernels = if args.no_kernels { None } else { Some(compare(args, turns)?) };
    progress::clear();
    let report = Report { operations, kernels };
    if cfg!(debug_assertions) {
        tell!("dewar: this build is not optimised: calls and loading take longer than they should");
    }
    let section = section(&report);
    if let Some(directory) = &args.show.keep {
        let (name, text) = section.file()?;
        output::keep(directory, &name, &text)?;
    }
    let width = Width::of(args.show.wide, cli::look::columns());
    output::report(&args.show, &report, |markdown| {
        let drawn = section.sheets.iter().map(|sheet| sheet.draw(Style::of(markdown), width));
        drawn.collect::<Vec<String>>().join("\n").trim_end().to_owned()
    })?;
    let differs = |made: &KernelReport| {
        made.cells.iter().any(|cell| cell.failure.as_deref() == Some("its reply differs"))
    };
    if report.kernels.as_ref().is_some_and(differs) {
        return Err(Failed("implementations of a kernel reply differently".to_owned()).into());
    }
    Ok(())
}

/// What goes into a report.
fn section(report: &Report) -> Section {
    let mut sheets = report.operations.sheets();
    let mut headline = report.operations.upcall().map_or_else(String::new, |ns| {
        format!("Calling an isolated plugin takes {}. ", table::nanoseconds(ns.median))
    });
    let kernels = report.kernels.as_ref();
    headline += &kernels.and_then(KernelReport::headline).unwrap_or_default();
    sheets.extend(kernels.iter().flat_map(|made| made.sheets()));
    let headline = headline.trim_end().to_owned();
    let mut section = Section::new("plugin", "Plugins, on every target", headline, sheets);
    section.figures.extend(kernels.filter(|made| !made.means.is_empty()).map(KernelReport::figure));
    if cfg!(debug_assertions) {
        section.trust = "Measured by a build that is not optimised: no figures.".to_owned();
    }
    section
}

fn compare(args: &PluginBenchArgs, turns: Interleaved) -> anyhow::Result<KernelReport> {
    let trial = Rc::new(Trial::new(None)?);
    let mut implementations: Vec<Box<dyn Implementation>> = Vec::new();
    for target in Target::ALL {
        implementations.push(Box::new(kernels::Own::new(Rc::clone(&trial), target)));
    }
    if !args.no_peers {
        for gcc in Gcc::all() {
            implementations.push(Box::new(gcc));
        }
        implementations.push(Box::new(LuaJit));
        implementations.push(Box::new(Cod));
    }
    let ratio = |over: &str, under: &str| (over.to_owned(), under.to_owned());
    let ratios = vec![
        ratio("isolated", "native"),
        ratio("native+stack", "native"),
        ratio("kernel", "native"),
        ratio("isolated", "gcc -O2"),
        ratio("native", "gcc -O2"),
        ratio("gcc -O2 +stack", "gcc -O2"),
        ratio("LuaJIT", "gcc -O2"),
        ratio("CoD", "gcc -O2"),
    ];
    let (sizes, kernels) = (args.size.clone(), args.kernel.clone());
    let comparison = KernelComparison { implementations, sizes, kernels, turns, ratios };
    Ok(comparison.run(&mut progress::note))
}
