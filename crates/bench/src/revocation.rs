//! What taking a permission back costs, by what is held and by how many: the founding table of
//! revocation.

use crate::{
    figure::{Curve, Drawing, Figure},
    held_resource::HeldResource,
    machine::Machine,
    plot::{self, Line, PlotError},
    report::Section,
    sheet::Sheet,
    statistics::Summary,
};
use serde::{Deserialize, Serialize};

/// How many are held.
pub const COUNTS: [usize; 13] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// From here on, what a change costs by itself hardly counts.
const MANY: f64 = 256.0;

/// What Flask on Fluke took for so many connections, in ms.
const FOUNDING: [(usize, &str); 5] =
    [(1, "1.55 ms"), (2, "1.56 ms"), (4, "1.57 ms"), (8, "1.60 ms"), (16, "1.65 ms")];

/// One revocation, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sample {
    /// Labelling rules and plan of the new policy, before anything changed.
    pub prepared_us: f64,
    /// From then until every thread stood still.
    pub stopped_us: f64,
    /// From then until nothing that was taken back could be used any more.
    pub took_us: f64,
    /// As many were taken back as were held, and the receipt says that it is complete.
    pub complete: bool,
}

/// One size of one kind.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    /// What was held.
    pub holding: HeldResource,
    /// How many.
    pub count: usize,
    /// Every round as it was.
    pub rounds: Vec<Sample>,
    /// Why there is nothing.
    pub error: Option<String>,
}

/// All of them.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// How often.
    pub rounds: usize,
    /// One after another.
    pub cells: Vec<Cell>,
}

impl Report {
    /// Measures every kind with up to `most` of it, `rounds` times in turn. `revoke` runs a sandbox
    /// that holds so many and takes them back; `progress` hears what comes next.
    pub fn measure(
        rounds: usize,
        most: usize,
        revoke: &mut dyn FnMut(HeldResource, usize) -> Result<Sample, String>,
        progress: &mut dyn FnMut(HeldResource, usize),
    ) -> Self {
        let counts = || COUNTS.into_iter().filter(|count| *count <= most);
        let cell = |holding, count| Cell { holding, count, rounds: Vec::new(), error: None };
        let cells =
            HeldResource::ALL.into_iter().flat_map(|it| counts().map(move |count| cell(it, count)));
        let mut cells: Vec<Cell> = cells.collect();
        for _ in 0..rounds {
            for cell in cells.iter_mut().filter(|cell| cell.error.is_none()) {
                progress(cell.holding, cell.count);
                match revoke(cell.holding, cell.count) {
                    Ok(sample) => cell.rounds.push(sample),
                    Err(error) => cell.error = Some(error),
                }
            }
        }
        Self { machine: Machine::here(), rounds, cells }
    }

    /// How the time grows with what is held: a graph, as SVG.
    ///
    /// # Errors
    ///
    /// [`PlotError`].
    pub fn plot(&self) -> Result<String, PlotError> {
        let lines: Vec<Line> = HeldResource::ALL
            .into_iter()
            .map(|holding| Line { name: holding.to_string(), points: self.points(holding) })
            .collect();
        plot::growth("Taking permissions back", ["held", "ms until complete"], &lines)
    }

    /// How many were held, and the milliseconds that it took.
    fn points(&self, holding: HeldResource) -> Vec<(f64, f64)> {
        let cells = self.cells.iter().filter(|cell| cell.holding == holding);
        let point = |cell: &Cell| {
            let took: Vec<f64> = cell.rounds.iter().map(|round| round.took_us).collect();
            Some((cell.count as f64, Summary::of(&took)?.median / 1000.0))
        };
        cells.filter_map(point).collect()
    }

    /// The table for people.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "Revocation: from the new policy's being ready until nothing taken back can be used",
            &[
                ("held", 0, false),
                ("count", 0, true),
                ("stopped", 1, true),
                ("complete", 0, true),
                ("± MAD", 2, true),
                ("max", 3, true),
                ("each", 1, true),
                ("Flask on Fluke", 4, true),
            ],
        );
        for cell in &self.cells {
            sheet.push(row(cell).into_iter().map(Into::into).collect());
        }
        sheet.notes = self.notes();
        sheet
    }

    /// The chapter of a report.
    #[must_use]
    pub fn section(&self) -> Section {
        let most = self.cells.iter().map(|cell| cell.count).max().unwrap_or_default();
        let said = HeldResource::ALL.into_iter().filter_map(|holding| {
            let (_, took) =
                self.points(holding).into_iter().find(|(count, _)| *count == most as f64)?;
            Some(format!("{most} {holding} in {took:.1} ms"))
        });
        let headline = format!("Taken back: {}.", said.collect::<Vec<String>>().join("; "));
        let mut section =
            Section::new("revoke", "Taking permissions back", headline, vec![self.sheet()]);
        section.machine = Some(self.machine.clone());
        let curve = |holding: HeldResource| Curve {
            name: holding.to_string(),
            points: self.points(holding),
        };
        section.figures.push(Figure {
            title: "How the time grows with what is held".to_owned(),
            description: "Milliseconds until complete, by how many are held, on logarithmic axes."
                .to_owned(),
            drawing: Drawing::Growth {
                axes: ["held", "ms until complete"].map(str::to_owned),
                curves: HeldResource::ALL.into_iter().map(curve).collect(),
            },
        });
        section
    }

    fn notes(&self) -> Vec<String> {
        let mut text = String::new();
        for cell in &self.cells {
            if let Some(error) = &cell.error {
                text += &format!("{} {}: {error}\n", cell.count, cell.holding);
            }
            let incomplete = cell.rounds.iter().filter(|round| !round.complete).count();
            if incomplete > 0 {
                text += &format!(
                    "{} {}: NOT COMPLETE in {incomplete} rounds\n",
                    cell.count, cell.holding
                );
            }
        }
        let prepared: Vec<f64> = self
            .cells
            .iter()
            .flat_map(|cell| &cell.rounds)
            .map(|round| round.prepared_us)
            .collect();
        if let Some(prepared) = Summary::of(&prepared) {
            text += &format!(
                "Making the new policy's labelling rules ready took {} before that (± {}); nothing had changed by then.\n",
                time(prepared.median),
                time(prepared.mad),
            );
        }
        let growth = |holding| {
            let mut points = self.points(holding);
            points.retain(|(count, _)| *count >= MANY);
            Some(format!("{holding} {:.2}", plot::exponent(&points)?))
        };
        let growth: Vec<String> = HeldResource::ALL.into_iter().filter_map(growth).collect();
        if !growth.is_empty() {
            text += &format!(
                "From {MANY} on the time grows with this power of the count (1: in proportion): {}.\n",
                growth.join(", ")
            );
        }
        text += &format!("{} rounds; medians. {}\n", self.rounds, self.machine);
        text.lines().map(str::to_owned).collect()
    }
}

fn row(cell: &Cell) -> Vec<String> {
    let numbers =
        |part: fn(&Sample) -> f64| Summary::of(&cell.rounds.iter().map(part).collect::<Vec<f64>>());
    let (stopped, took) = (numbers(|it| it.stopped_us), numbers(|it| it.took_us));
    let shown = |summary: Option<Summary>, part: fn(&Summary) -> f64| {
        summary.map_or_else(|| "–".to_owned(), |summary| time(part(&summary)))
    };
    let founding = FOUNDING.iter().find(|(count, _)| *count == cell.count);
    let founding = founding.filter(|_| cell.holding == HeldResource::Connections);
    vec![
        cell.holding.to_string(),
        cell.count.to_string(),
        shown(stopped, |it| it.median),
        shown(took, |it| it.median),
        shown(took, |it| it.mad),
        shown(took, |it| it.max),
        took.map_or_else(|| "–".to_owned(), |it| time(it.median / cell.count as f64)),
        founding.map_or("", |(_, time)| time).to_owned(),
    ]
}

/// Microseconds, for people.
fn time(micros: f64) -> String {
    if micros < 1000.0 { format!("{micros:.0} µs") } else { format!("{:.2} ms", micros / 1000.0) }
}
