//! What was measured, for people: tables, and the founding paper's figures.

use super::{IMAGES, runner::ServerLoad};
use crate::{
    figure::{Bar, Drawing, Figure},
    pairs::{Estimate, ExperimentResult, Kept, Row, outcome_of},
    sheet::{Cell, Sheet},
    statistics::Summary,
};
use serde::{Deserialize, Serialize};

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Report {
    outcome: ExperimentResult,
}

/// What a figure shows of a row.
#[derive(Clone, Copy)]
enum Quantity {
    Time,
    /// By the server's own clock.
    Inside,
    Rate,
    Processor,
}

impl Report {
    pub(super) fn new(outcome: ExperimentResult) -> Self {
        Self { outcome }
    }

    /// Whether anything was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.outcome.rows.iter().all(|row| row.wall_s.is_none())
    }

    /// A table for each image, transcoded and plain: one row for each server.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        let mut sheets = Vec::new();
        for gray in [true, false] {
            for image in 0..IMAGES.len() {
                sheets.push(self.sheet(image, gray));
            }
        }
        if let Some(last) = sheets.last_mut() {
            last.notes = self.notes();
        }
        sheets
    }

    fn row(&self, asked: ServerLoad, setting: usize) -> Option<&Row> {
        let subject = ServerLoad::all().position(|it| it == asked)?;
        self.outcome.of_subject(subject).find(|row| row.setting == setting)
    }

    fn sheet(&self, image: usize, gray: bool) -> Sheet {
        let settings = &self.outcome.experiment.settings;
        let what = if gray { "turned gray" } else { "as it is" };
        let against = settings.first().map_or("the first", |it| it.name.as_str());
        let mut sheet = Sheet::new(
            &format!("Image of {}, {what}; against {against}", IMAGES[image].0),
            &[
                ("server", 0, false),
                ("CPU µs", 0, true),
                ("95 %", 3, true),
                ("change", 0, true),
                ("95 % of change", 1, false),
                ("requests/s", 2, true),
                ("one, µs", 2, true),
                ("95 % of one", 4, true),
                ("at the server, µs", 3, true),
                ("95 % at the server", 5, true),
                ("slices", 5, true),
            ],
        );
        for (setting, named) in settings.iter().enumerate() {
            let load = self.row(ServerLoad { image, gray, single: false }, setting);
            let single = self.row(ServerLoad { image, gray, single: true }, setting);
            let Some(load) = load.filter(|row| row.wall_s.is_some()) else { continue };
            sheet.push(cells(&named.name, load, single));
        }
        sheet
    }

    fn notes(&self) -> Vec<String> {
        let experiment = &self.outcome.experiment;
        let mut notes: Vec<String> = experiment.notes.clone();
        for row in &self.outcome.rows {
            let why = row.failure.as_ref().filter(|why| !why.starts_with("plain files"));
            if let Some(why) = why {
                let subject = &experiment.subjects[row.subject].name;
                notes.push(format!("{}, {subject}: {why}", self.outcome.setting(row)));
            }
        }
        notes.push(format!(
            "Medians over slices that alternate between servers, with 95 % intervals; slices are {}. CPU: processor time of \
             all processes of the server, by eight connections with a request each under way; one: from question to \
             complete answer, over one connection; at the server: the same by the server's clock, from the request until \
             the answer, or what the kernel takes of it at once, is sent (Apache by its log, Dewar's server by its metrics; nginx \
             knows milliseconds only). The first slice does not count. Change: ratio of processor time within \
             rounds; {}",
            experiment.unit,
            self.outcome.ended()
        ));
        notes.push(experiment.machine.to_string());
        notes
    }

    /// What samples that were kept come to.
    #[must_use]
    pub fn of(kept: &Kept) -> Self {
        Self::new(outcome_of(kept))
    }

    /// What an isolated plugin takes against the first server, by size.
    #[must_use]
    pub fn headline(&self) -> String {
        let settings = &self.outcome.experiment.settings;
        let ours = settings.iter().position(|it| it.name == "dewar isolated");
        let said = |image: usize| {
            let row = self.row(ServerLoad { image, gray: true, single: false }, ours?)?;
            let Estimate { ratio, low, high, .. } = row.cpu.as_ref()?;
            Some(format!("{} {ratio:.2} ({low:.2} … {high:.2})", IMAGES[image].0))
        };
        let said: Vec<String> = (0..IMAGES.len()).filter_map(said).collect();
        match settings.first().filter(|_| !said.is_empty()) {
            Some(first) => format!(
                "Processor time per request of `dewar isolated` against `{}`, by size of the image: {}.",
                first.name,
                said.join("; ")
            ),
            None => "Nothing was compared.".to_owned(),
        }
    }

    /// The figures: a name for each. The paper's four, and processor time.
    #[must_use]
    pub fn figures(&self) -> Vec<(String, Figure)> {
        let mut figures = Vec::new();
        for (gray, what) in [(false, "plain"), (true, "gray")] {
            for (quantity, name) in [
                (Quantity::Time, "service-time"),
                (Quantity::Inside, "service-time-at-server"),
                (Quantity::Rate, "throughput"),
                (Quantity::Processor, "processor-time"),
            ] {
                figures.push((format!("{name}-{what}"), self.figure(quantity, gray)));
            }
        }
        figures
    }

    fn figure(&self, quantity: Quantity, gray: bool) -> Figure {
        let (axis, what) = match quantity {
            Quantity::Time => ("µs from question to complete answer", "Service time"),
            Quantity::Inside => {
                ("µs from request to answer by the server's clock", "Service time at the server")
            }
            Quantity::Rate => ("requests per second", "Throughput"),
            Quantity::Processor => {
                ("µs of processor time of the server per request", "Processor time")
            }
        };
        let kind = if gray { "images turned gray" } else { "images as they are" };
        let mut amounts = Vec::new();
        for (image, (name, ..)) in IMAGES.iter().enumerate() {
            for (setting, named) in self.outcome.experiment.settings.iter().enumerate() {
                let single = matches!(quantity, Quantity::Time | Quantity::Inside);
                let row = self.row(ServerLoad { image, gray, single }, setting);
                let Some((value, low, high)) = row.and_then(|row| quantity.of(row)) else {
                    continue;
                };
                let (group, name) = ((*name).to_owned(), named.name.clone());
                amounts.push(Bar { group, name, value, low, high });
            }
        }
        Figure {
            title: format!("{what}, {kind}"),
            description: "Medians over slices in turn, with 95 % intervals.".to_owned(),
            drawing: Drawing::Dots { axis: axis.to_owned(), amounts },
        }
    }
}

fn cells(name: &str, load: &Row, single: Option<&Row>) -> Vec<Cell> {
    let number = |value: f64| {
        let text = if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
        Cell::number(text, value)
    };
    let or_empty = |cell: Option<Cell>| cell.unwrap_or_else(Cell::empty);
    let range = |of: Option<(f64, f64, f64)>| {
        or_empty(of.map(|(_, low, high)| {
            let text = format!("{} … {}", number(low).text, number(high).text);
            Cell::number(text, high - low)
        }))
    };
    let (cpu, rate) = (Quantity::Processor.of(load), Quantity::Rate.of(load));
    let one = single.and_then(|row| Quantity::Time.of(row));
    let inside = single.and_then(|row| Quantity::Inside.of(row));
    let change = load.cpu.as_ref();
    let times = |ratio: f64| format!("{ratio:.2} ×");
    let interval = |it: &Estimate| format!("{:.2} … {:.2}", it.low, it.high);
    vec![
        name.into(),
        or_empty(cpu.map(|it| number(it.0))),
        range(cpu),
        or_empty(change.map(|it| Cell::number(times(it.ratio), it.ratio))),
        or_empty(change.map(|it| interval(it).into())),
        or_empty(rate.map(|it| Cell::number(format!("{:.0}", it.0), it.0))),
        or_empty(one.map(|it| number(it.0))),
        range(one),
        or_empty(inside.map(|it| number(it.0))),
        range(inside),
        or_empty(load.wall_s.map(|it| Cell::number(it.count.to_string(), it.count as f64))),
    ]
}

impl Quantity {
    /// The median, and the ends of its interval.
    fn of(self, row: &Row) -> Option<(f64, f64, f64)> {
        let micros = |it: &Summary| {
            let (low, high) = it.interval();
            (it.median * 1e6, low * 1e6, high * 1e6)
        };
        match self {
            Self::Time => row.wall_s.as_ref().map(micros),
            Self::Inside => row.inside_s.as_ref().map(micros),
            Self::Processor => row.cpu_s.as_ref().map(micros),
            Self::Rate => row.wall_s.as_ref().map(|it| {
                let (low, high) = it.interval();
                (1.0 / it.median, 1.0 / high, 1.0 / low)
            }),
        }
    }
}
