//! The engine of all comparisons: small units of work, alternated in random order between settings
//! that live beside each other.
//!
//! ```text
//!  Experiment ── subjects (what is measured) × settings (under what), reference first
//!      │
//!      ▼            round: one unit, performed by every setting, in an order drawn anew
//!  engine::run ──▶ Runner … Runner ──▶ Sample ──▶ Store (JSON lines; resumed from there)
//!      │                                    │
//!      │  stop: narrow enough, budget spent, interrupted
//!      ▼                                    ▼
//!  progress with the time left         Estimate: median of the ratios within rounds, bootstrap
//!                                      interval, Wilcoxon's test ──▶ Verdict, or none
//! ```
//!
//! A whole build takes seconds, in which other work on the machine comes and goes: its time against
//! another's says little below ten percent. A single compilation takes a tenth of a second, and
//! meets what its neighbour in the round meets. So the ratio within a round is taken, and many
//! rounds.
//!
//! Two processes of one program differ by a percent or two for as long as they live, by where
//! chance laid their memory (Mytkowycz and others, "Producing Wrong Data Without Doing Anything
//! Obviously Wrong!", 2009). So runners that stay are started anew again and again, and an interval
//! is at least as wide as their lives differ.

pub mod engine;
mod estimate;
mod outcome;
mod process;
pub mod show;
mod store;
mod trust;
mod unit;

pub use estimate::{Estimate, Verdict};
pub use outcome::{ExperimentResult, Row, of as outcome_of};
pub use process::{Language, Launch, ProcessRunner, Processor, WholeCommand};
pub use store::{Failure, Kept, RawFile, Store, StoreError, read};
pub use trust::{Draws, LEAST_RECORDED, Trust, sheet as trust_sheet, trust};
pub use unit::{Took, Unit, serve};

use crate::{config::Kind, machine::Machine};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is compared, and how closely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Experiment {
    /// A word for files and the report: `build`, `walk`.
    pub name: String,
    /// What tables are called.
    pub title: String,
    /// What one unit is, in a few words: `one compilation`.
    pub unit: String,
    /// What is measured, each by itself.
    pub subjects: Vec<Subject>,
    /// Under what; every setting is compared with the first.
    pub settings: Vec<Setting>,
    /// When it is enough.
    pub aim: Aim,
    /// Of the order within rounds.
    pub seed: u64,
    /// Where it was begun, and when.
    pub machine: Machine,
    /// What readers must know to judge the figures.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One thing that is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Its units: rounds take them in a random order, all of them before one comes again.
    pub units: Vec<Unit>,
    /// So many operations are one unit; figures are of one operation.
    pub operations: f64,
}

/// Under what it is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The part it plays.
    pub kind: Kind,
}

/// When it is enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Aim {
    /// An interval this wide to each side is narrow enough: 0.01 is 1 %.
    pub half_width: f64,
    /// Seconds after which it ends, with as many rounds as make a figure.
    pub budget_s: f64,
    /// Rounds of each subject before it may be enough.
    pub least: usize,
    /// Rounds of each subject after which it is enough in any case; `None` for no such number.
    #[serde(default)]
    pub most: Option<usize>,
    /// Seconds that a single unit may take.
    pub timeout_s: f64,
    /// Seconds after which runners that stay are started anew, at the earliest.
    #[serde(default)]
    pub life_s: f64,
}

impl Default for Aim {
    fn default() -> Self {
        Self {
            half_width: 0.01,
            budget_s: 600.0,
            least: 30,
            most: None,
            timeout_s: 600.0,
            life_s: 1.0,
        }
    }
}

/// One unit under one setting, as it was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Which round, counted from 0 through all subjects.
    pub round: usize,
    /// Which subject.
    pub subject: usize,
    /// Which of its units.
    pub unit: usize,
    /// Which setting.
    pub setting: usize,
    /// Which turn within the round.
    pub turn: usize,
    /// How often the runners had been started anew; `None` where none stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<usize>,
    /// The first time under this setting, or in this life: it does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
    /// What it took.
    #[serde(flatten)]
    pub took: Took,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// Every interval is narrow enough.
    Narrow,
    /// The time is over, or there were as many rounds as were asked for.
    Budget,
    /// Somebody interrupted it, or it has not ended yet.
    Interrupted,
    /// No setting is left that could be compared with the first.
    Failed,
}

/// What performs units under one setting, for as long as the experiment lasts.
pub trait Runner {
    /// Performs one unit, in at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`RunnerError`]; after one the runner is not asked again.
    fn perform(&mut self, unit: &Unit, timeout: Duration) -> Result<Took, RunnerError>;

    /// Whether it stays between units. What chance laid down at its start (addresses, pages, the
    /// place of its files in caches) then stays as well, and would be taken for a difference.
    fn stays(&self) -> bool {
        false
    }

    /// Ends what stays; the next unit starts it anew.
    fn renew(&mut self) {}
}

/// Why a unit was not performed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The runner could not be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// Its program.
        program: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The runner ended, and what it said last.
    #[error("the runner ended{}{said}", if .said.is_empty() { "" } else { ": " })]
    Ended {
        /// Its last words on standard error.
        said: String,
    },
    /// It did not answer in time.
    #[error("no answer within {:.0} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// It said that the unit failed.
    #[error("{0}")]
    Unit(String),
    /// Pipes failed, or it answered what cannot be read.
    #[error("cannot talk to the runner: {0}")]
    Talk(#[from] std::io::Error),
    /// The person at the terminal stopped it.
    #[error("interrupted")]
    Interrupted,
}
