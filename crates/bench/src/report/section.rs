//! One experiment of the report.

use crate::{
    figure::{Bar, Curve, Drawing, Figure},
    machine::Machine,
    pairs::{ExperimentResult, Kept, outcome_of},
    sheet::Sheet,
    web,
};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Points of a cumulative distribution: a share each.
const SHARES: usize = 60;

/// Bytes of raw data of one experiment that a page carries; the rest stays in the file.
const RAW_BYTES: usize = 150_000;

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Section {
    /// A word for links and files.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// What came of it, in one sentence.
    pub headline: String,
    /// How much the figures can be trusted, in one sentence; empty where the tables say it.
    #[serde(default)]
    pub trust: String,
    /// The tables.
    pub sheets: Vec<Sheet>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Where and when.
    pub machine: Option<Machine>,
    /// What was measured, as lines of comma-separated values.
    pub raw: String,
}

impl Section {
    /// A section without figures and raw data.
    #[must_use]
    pub fn new(name: &str, title: &str, headline: String, sheets: Vec<Sheet>) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            headline,
            trust: String::new(),
            sheets,
            figures: Vec::new(),
            machine: Some(Machine::here()),
            raw: String::new(),
        }
    }

    /// The section of an experiment of pairs.
    #[must_use]
    pub fn of_pairs(kept: &Kept) -> Self {
        let outcome = outcome_of(kept);
        let mut figures = vec![ratios(&outcome)];
        if kept.experiment.subjects.len() == 1 {
            figures.push(distribution(kept));
        }
        Self {
            name: kept.experiment.name.clone(),
            title: kept.experiment.title.clone(),
            headline: outcome.headline(),
            trust: trust(&outcome),
            sheets: outcome.sheets(),
            figures,
            machine: Some(kept.experiment.machine.clone()),
            raw: raw(kept),
        }
    }

    /// The section of web servers: their own tables, and of their figures those that say most.
    #[must_use]
    pub fn of_web(kept: &Kept) -> Self {
        const SHOWN: [&str; 5] = [
            "processor-time-gray",
            "service-time-at-server-gray",
            "service-time-gray",
            "throughput-gray",
            "processor-time-plain",
        ];
        let report = web::Report::of(kept);
        let mut drawn = report.figures();
        drawn.retain(|(name, figure)| SHOWN.contains(&name.as_str()) && !figure.is_empty());
        drawn.sort_by_key(|(name, _)| SHOWN.iter().position(|shown| shown == name));
        Self {
            title: "Web servers with plugins".to_owned(),
            headline: report.headline(),
            sheets: report.sheets(),
            figures: drawn.into_iter().map(|(_, figure)| figure).collect(),
            ..Self::of_pairs(kept)
        }
    }

    /// The file that keeps it for a report: its name, and what is in it.
    ///
    /// # Errors
    ///
    /// It has no form in JSON.
    pub fn file(&self) -> serde_json::Result<(String, String)> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok((format!("{}.json", self.name), text))
    }
}

/// Whether the figures can be trusted.
fn trust(outcome: &ExperimentResult) -> String {
    let estimates = || outcome.rows.iter().filter_map(|row| row.wall.as_ref());
    let least = estimates().map(|it| it.pairs).min().unwrap_or_default();
    let widest = estimates().map(crate::pairs::Estimate::half_width).fold(0.0, f64::max);
    format!(
        "{} At least {least} pairs each; the widest interval is ±{:.1} %.",
        capitalised(&outcome.ended()),
        widest * 100.0
    )
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn ratios(outcome: &ExperimentResult) -> Figure {
    let several = outcome.experiment.subjects.len() > 1;
    let mut bars = Vec::new();
    for row in &outcome.rows {
        let Some(wall) = &row.wall else { continue };
        let group = if several {
            outcome.experiment.subjects[row.subject].name.clone()
        } else {
            String::new()
        };
        let name = outcome.setting(row).to_owned();
        bars.push(Bar { group, name, value: wall.ratio, low: wall.low, high: wall.high });
    }
    if several {
        let group = "geometric mean";
        for (setting, named) in outcome.experiment.settings.iter().enumerate().skip(1) {
            let Some([value, low, high]) = outcome.index(setting) else { continue };
            bars.push(Bar { group: group.to_owned(), name: named.name.clone(), value, low, high });
        }
    }
    Figure {
        title: format!(
            "{}, against {}",
            outcome.experiment.title, outcome.experiment.settings[0].name
        ),
        description: format!(
            "Bars from 1 to the median ratio, with 95 % intervals. {}",
            outcome.headline()
        ),
        drawing: Drawing::Bars(bars),
    }
}

/// How long the units took, under each setting.
fn distribution(kept: &Kept) -> Figure {
    let curve = |(setting, named): (usize, &crate::pairs::Setting)| {
        let mine = kept.samples.iter().filter(|it| it.setting == setting && !it.warm);
        let mut times: Vec<f64> = mine.map(|it| it.took.wall_s).collect();
        times.sort_by(f64::total_cmp);
        let last = times.len().checked_sub(1)?;
        let point = |step: usize| (times[last * step / SHARES], step as f64 / SHARES as f64);
        Some(Curve { name: named.name.clone(), points: (0..=SHARES).map(point).collect() })
    };
    let curves = kept.experiment.settings.iter().enumerate().filter_map(curve).collect();
    let unit = &kept.experiment.unit;
    Figure {
        title: "How long single units took".to_owned(),
        description: format!(
            "Cumulative distributions of the time of one unit ({unit}) under each setting."
        ),
        drawing: Drawing::Cumulative { axis: "time of one unit".to_owned(), curves },
    }
}

fn raw(kept: &Kept) -> String {
    let mut text = "round,subject,unit,setting,turn,warm,wall_s,cpu_s\n".to_owned();
    for sample in &kept.samples {
        let subject = &kept.experiment.subjects[sample.subject].name;
        let setting = &kept.experiment.settings[sample.setting].name;
        let cpu = sample.took.cpu_s.map_or_else(String::new, |cpu| format!("{cpu:.6}"));
        // Writing into a text does not fail.
        let _ = writeln!(
            text,
            "{},\"{subject}\",{},\"{setting}\",{},{},{:.9},{cpu}",
            sample.round,
            sample.unit,
            sample.turn,
            u8::from(sample.warm),
            sample.took.wall_s,
        );
        if text.len() > RAW_BYTES {
            text += "# the rest is in the file of samples\n";
            break;
        }
    }
    text
}
