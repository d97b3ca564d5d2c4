//! What becomes of results: tables on the terminal, JSON, and files for a report.

use anyhow::Context as _;
use bench::{
    interrupt::Interrupt,
    pairs::{ExperimentResult, RawFile},
    progress::Bar,
    report::Section,
    sheet::{Sheet, Width},
    study::Study,
    table::Style,
};
use cli::{args::show::ShowArgs, output, output_file};
use serde::Serialize;

/// Measures a study, keeps its samples, and prints its tables.
pub(crate) fn study(study: Study, show: &ShowArgs) -> anyhow::Result<ExperimentResult> {
    let outcome = measure(study, show)?;
    sheets(&outcome.sheets(), &outcome, show)?;
    anyhow::ensure!(is_measured(&outcome), "nothing could be measured");
    Ok(outcome)
}

/// Measures several studies: the tables of each as soon as it has ended, and one document of all.
pub(crate) fn studies(
    studies: impl IntoIterator<Item = Study>,
    show: &ShowArgs,
) -> anyhow::Result<Vec<ExperimentResult>> {
    let mut outcomes = Vec::new();
    for study in studies {
        let outcome = measure(study, show)?;
        anyhow::ensure!(is_measured(&outcome), "nothing could be measured");
        tables(&outcome.sheets(), show)?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Whether there is a figure of anything but the first setting.
pub(crate) fn is_measured(outcome: &ExperimentResult) -> bool {
    outcome.rows.iter().any(|row| row.setting > 0 && row.wall_s.is_some())
}

/// Measures a study and keeps its samples.
pub(crate) fn measure(study: Study, show: &ShowArgs) -> anyhow::Result<ExperimentResult> {
    let name = study.experiment.name.clone();
    let interrupt = Interrupt::notice()?;
    let raw = samples(show, &format!("{name}.jsonl"))?;
    let bar = Bar::new(&name);
    Ok(study.run(raw, &interrupt, &mut |standing| bar.show(standing))?)
}

/// Prints tables as the arguments say, and `data` where JSON is asked for.
pub(crate) fn sheets(all: &[Sheet], data: &impl Serialize, show: &ShowArgs) -> anyhow::Result<()> {
    output::report(show, data, |markdown| drawn(all, markdown, show))
}

/// Prints tables, unless JSON is asked for.
pub(crate) fn tables(all: &[Sheet], show: &ShowArgs) -> anyhow::Result<()> {
    if show.json {
        return Ok(());
    }
    let text = drawn(all, show.markdown, show) + "\n";
    let shown = if show.markdown { output::print(text.as_bytes()) } else { cli::look::show(&text) };
    Ok(shown?)
}

fn drawn(all: &[Sheet], markdown: bool, show: &ShowArgs) -> String {
    let width = Width::of(show.wide, cli::look::columns());
    let drawn = all.iter().map(|sheet| sheet.draw(Style::of(markdown), width));
    drawn.collect::<Vec<String>>().join("\n").trim_end().to_owned()
}

/// Keeps a section for a report, if that is asked for.
pub(crate) fn keep(section: &Section, show: &ShowArgs) -> anyhow::Result<()> {
    let Some(directory) = &show.keep else { return Ok(()) };
    let (name, text) = section.file()?;
    output::keep(directory, &name, &text)
}

/// The file of samples, if they are to be kept.
pub(crate) fn samples(show: &ShowArgs, name: &str) -> anyhow::Result<Option<RawFile>> {
    let Some(directory) = &show.keep else { return Ok(None) };
    output_file::make_directory(directory, &[], 0o777)
        .with_context(|| format!("cannot keep samples in `{}`", directory.display()))?;
    Ok(Some(RawFile { path: directory.join(name), open: output_file::update }))
}
