//! What a check of the library for object managers costs: in Rust, in C and in Python, by where the
//! answer is found. Each language asks in a loop of its own; what the loop takes is measured beside
//! it, and taken off.
//!
//! ```text
//!  this process: crate `object-manager` ─┐
//!  check.c, linked with libdewar ────────┼──▶ batches in turn ──▶ LibraryReport ──▶ Sheet, Section
//!  check.py, import dewar ───────────────┘
//! ```

mod child;
mod ways;

use crate::{
    interleaved::{Batch, Interleaved},
    machine::Machine,
    report::Section,
    sheet::{Cell as Shown, Sheet},
    statistics::{Summary, median_of},
    table,
};
use serde::{Deserialize, Serialize};
use std::{io, path::PathBuf};
use ways::Way as Asking;

/// Objects that are asked about, each with a label of its own: a power of two.
const OBJECTS: usize = 1024;

/// Where the answer to a check is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Nowhere: the loop that asks, without asking.
    Loop,
    /// At the hint of the object.
    Hint,
    /// In the cache.
    Cache,
    /// At the security server in the same process.
    Server,
}

impl Place {
    /// All of them.
    const ALL: [Self; 4] = [Self::Loop, Self::Hint, Self::Cache, Self::Server];

    const fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Hint => "hint",
            Self::Cache => "cache",
            Self::Server => "server",
        }
    }
}

/// What one kind of check took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    /// Where the answer was found.
    pub place: Place,
    /// Nanoseconds of processor time of a check, with the loop that asks.
    pub ns: Option<Summary>,
    /// The same of every round.
    pub rounds_ns: Vec<f64>,
    /// Why it was not measured.
    pub failure: Option<String>,
}

/// A language, or the cache alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Way {
    /// What tables call it.
    pub name: String,
    /// What was measured, or nothing if it cannot be had.
    pub cells: Vec<Cell>,
    /// Why it cannot be had.
    pub missing: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LibraryReport {
    /// Where and when.
    pub machine: Machine,
    /// How often.
    pub rounds: usize,
    /// Objects with a label of their own.
    pub objects: usize,
    /// The cache alone, then one language each.
    pub ways: Vec<Way>,
}

/// Where the libraries for the other languages are.
#[derive(Clone, Debug, Default)]
pub struct Libraries {
    /// The shared library for C.
    pub c: Option<PathBuf>,
    /// The interpreter that can `import dewar`.
    pub python: PathBuf,
}

/// Measures all that can be had.
///
/// # Errors
///
/// Whatever the system says of files and of this process; what a language lacks is in the report.
pub fn measure(turns: Interleaved, libraries: &Libraries) -> io::Result<LibraryReport> {
    let machine = Machine::here();
    let directory = tempfile::tempdir()?;
    let policy = directory.path().join("check.cil");
    std::fs::write(&policy, ways::policy())?;
    let mut found: Vec<Asking> = ways::in_this_process(&policy).map_err(io::Error::other)?;
    found.push(child::in_c(libraries.c.as_deref(), directory.path(), &policy));
    found.push(child::in_python(&libraries.python, directory.path(), &policy));
    let mut jobs: Vec<Batch<'_>> = Vec::new();
    let mut ways: Vec<Way> = Vec::new();
    for way in found {
        let (made, missing) = match way.jobs {
            Ok(made) => (made, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let cell = |place| Cell { place, ns: None, rounds_ns: Vec::new(), failure: None };
        let cells = made.iter().map(|(place, _)| cell(*place)).collect();
        ways.push(Way { name: way.name, cells, missing });
        jobs.extend(made.into_iter().map(|(_, job)| job));
    }
    let results = turns.run(&mut jobs);
    for (cell, result) in ways.iter_mut().flat_map(|way| &mut way.cells).zip(results) {
        match result {
            Ok(rounds) => (cell.ns, cell.rounds_ns) = (Summary::of(&rounds), rounds),
            Err(why) => cell.failure = Some(why),
        }
    }
    Ok(LibraryReport { machine, rounds: turns.rounds, objects: OBJECTS, ways })
}

impl Way {
    fn cell(&self, place: Place) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.place == place)
    }

    /// Nanoseconds of a check without the loop that asks: the median of the rounds' differences.
    #[must_use]
    pub fn without_loop(&self, place: Place) -> Option<f64> {
        let (whole, empty) = (self.cell(place)?, self.cell(Place::Loop)?);
        let pairs = whole.rounds_ns.iter().zip(&empty.rounds_ns);
        median_of(&pairs.map(|(whole, empty)| (whole - empty).max(0.0)).collect::<Vec<f64>>())
    }

    fn row(&self) -> Vec<Shown> {
        let whole = |place| match self.cell(place) {
            Some(Cell { ns: Some(ns), .. }) => {
                Shown::number(table::nanoseconds(ns.median), ns.median)
            }
            Some(Cell { failure: Some(_), .. }) => "failed".into(),
            _ => "–".into(),
        };
        let bare = |place| match self.without_loop(place) {
            Some(ns) => Shown::number(table::nanoseconds(ns), ns),
            None => whole(place),
        };
        let spread = self.cell(Place::Hint).and_then(|cell| cell.ns);
        let spread = spread
            .map_or_else(Shown::empty, |ns| Shown::number(table::nanoseconds(ns.mad), ns.mad));
        vec![
            self.name.as_str().into(),
            bare(Place::Hint),
            spread,
            bare(Place::Cache),
            bare(Place::Server),
            whole(Place::Loop),
        ]
    }
}

impl LibraryReport {
    /// The table for people.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "A check of the library, by where its answer is found",
            &[
                ("asked by", 0, false),
                ("at the hint", 0, true),
                ("± MAD", 3, true),
                ("in the cache", 0, true),
                ("from the server", 1, true),
                ("the loop", 2, true),
            ],
        );
        for way in &self.ways {
            sheet.push(way.row());
        }
        for way in &self.ways {
            let failed = way.cells.iter().find_map(|cell| cell.failure.as_ref());
            sheet
                .notes
                .extend(way.missing.iter().chain(failed).map(|why| format!("{}: {why}", way.name)));
        }
        sheet.notes.push(format!(
            "Processor time of one check that is granted; what the loop that asks takes is taken off the others. {} objects, \
             each with a label of its own.",
            self.objects
        ));
        sheet.notes.push(format!("{} rounds; medians. {}", self.rounds, self.machine));
        sheet
    }

    /// The chapter of a report.
    #[must_use]
    pub fn section(&self) -> Section {
        let said = |way: &Way| {
            let ns = way.without_loop(Place::Hint)?;
            Some(format!("{} {}", way.name, table::nanoseconds(ns)))
        };
        let said: Vec<String> = self.ways.iter().filter_map(said).collect();
        let headline = format!("A check that is granted at the hint: {}.", said.join(", "));
        let title = "The library for object managers";
        let mut section = Section::new("library", title, headline, vec![self.sheet()]);
        section.machine = Some(self.machine.clone());
        section
    }

    /// Whether anything was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ways.iter().flat_map(|way| &way.cells).all(|cell| cell.ns.is_none())
    }
}
