//! What single operations cost under each configuration, beside the floor of the same run.

use crate::{
    comparison::{ComparisonError, Medium},
    config::{Config, Kind},
    floor,
    interrupt::Interrupt,
    machine::Machine,
    operation,
    process::CommandLine,
    runner::{self, Job, Plan, Progress, Runs},
    statistics::{Ratio, Summary},
    table::{self, Style},
    worker::{Task, Worker},
};
use serde::Serialize;
use std::path::Path;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Syscalls {
    /// The configurations, native first.
    pub configs: Vec<Config>,
    /// The program that measures itself inside each.
    pub worker: Worker,
    /// Where the workspace lies.
    pub medium: Medium,
    /// How often.
    pub plan: Plan,
}

/// What one operation takes under one configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The operation.
    pub operation: String,
    /// Nanoseconds over the rounds, or why there are none.
    pub ns: Result<Summary, String>,
    /// Against native.
    pub vs_native: Option<Ratio>,
    /// Against the notification that is the least such an operation can cost when it is mediated.
    pub vs_floor: Option<Ratio>,
}

/// What the operations take under one configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// The configuration's name, or `floor`.
    pub name: String,
    /// The part it plays; the floor counts as base.
    pub kind: Kind,
    /// In the order in which they are performed; none if the configuration failed.
    pub cells: Vec<Cell>,
    /// Why it failed.
    pub failure: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct SyscallReport {
    /// Where and when.
    pub machine: Machine,
    /// How often.
    pub plan: Plan,
    /// One a configuration, and the floor at the end.
    pub columns: Vec<Column>,
    /// Every run as it was; `job` counts through `columns`.
    #[serde(flatten)]
    pub runs: Runs,
}

/// The timings of one job: by round, what the worker printed.
struct Timings(Vec<(usize, Vec<operation::Timing>)>);

impl Timings {
    fn of(runs: &Runs, job: usize) -> Self {
        let parsed = |printed: &str| serde_json::from_str(printed).unwrap_or_default();
        Self(runs.measured(job).map(|(round, m)| (round, parsed(&m.printed))).collect())
    }

    /// Every operation once, in order.
    fn names(&self) -> Vec<String> {
        let first = self.0.first().map(|(_, timings)| timings.iter());
        first.into_iter().flatten().map(|timing| timing.name.clone()).collect()
    }

    fn by_round(&self, name: &str) -> impl Iterator<Item = (usize, f64)> {
        self.0.iter().filter_map(move |(round, timings)| {
            let timing = timings.iter().find(|timing| timing.name == name)?;
            Some((*round, timing.ns?))
        })
    }

    fn summary(&self, name: &str) -> Result<Summary, String> {
        let ns: Vec<f64> = self.by_round(name).map(|(_, ns)| ns).collect();
        let error = || {
            let mut timings = self.0.iter().flat_map(|(_, timings)| timings);
            let error = timings.find(|timing| timing.name == name).and_then(|t| t.error.clone());
            error.unwrap_or_else(|| "not measured".to_owned())
        };
        Summary::of(&ns).ok_or_else(error)
    }

    fn ratio(&self, name: &str, other: &Self, other_name: &str) -> Option<Ratio> {
        let pairs: Vec<(f64, f64)> = self
            .by_round(name)
            .filter_map(|(round, ns)| {
                let (_, compared) = other.by_round(other_name).find(|(r, _)| *r == round)?;
                Some((ns, compared))
            })
            .collect();
        Ratio::of(&pairs)
    }
}

impl Syscalls {
    /// Runs all of it; tells `progress` what comes next.
    ///
    /// # Errors
    ///
    /// [`ComparisonError`]. A configuration that fails is a column that says why, not an error.
    pub fn run(
        &self,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<SyscallReport, ComparisonError> {
        // Before there is something to be removed.
        let interrupt = Interrupt::notice()?;
        let machine = Machine::here();
        let workspace = self.medium.workspace(&|workspace| self.worker.install(workspace))?;
        let native = Config { name: "floor".to_owned(), kind: Kind::Base, ..Config::native() };
        let configs: Vec<&Config> = self.configs.iter().chain([&native]).collect();
        let jobs: Vec<Job> =
            configs.iter().map(|config| self.job(workspace.path(), config)).collect();
        let runs = runner::run(&jobs, self.plan, &interrupt, progress);
        let timings: Vec<Timings> = (0..configs.len()).map(|job| Timings::of(&runs, job)).collect();
        let columns = configs
            .iter()
            .enumerate()
            .map(|(job, config)| Column {
                name: config.name.clone(),
                kind: config.kind,
                cells: cells(&timings, job),
                failure: runs.failure(job).map(str::to_owned),
            })
            .collect();
        Ok(SyscallReport { machine, plan: self.plan, columns, runs })
    }

    /// The floor is the configuration that comes last: it has another task, and runs natively.
    fn job(&self, workspace: &Path, config: &Config) -> Job {
        let task = if config.name == "floor" { Task::Floor } else { Task::Operations };
        Job {
            name: config.name.clone(),
            command: CommandLine {
                argv: config.command_line(workspace, &self.worker.command(task)),
                env: config.env.clone(),
            },
            directory: workspace.to_owned(),
            // A configuration that may create but not remove leaves nothing behind for the next.
            prepare: CommandLine {
                argv: operation::REMOVE.map(Into::into).to_vec(),
                env: Vec::new(),
            },
            verify: CommandLine::default(),
        }
    }
}

fn cells(timings: &[Timings], job: usize) -> Vec<Cell> {
    let mine = &timings[job];
    let (native, floors) = (&timings[0], &timings[timings.len() - 1]);
    let names = mine.names();
    names
        .into_iter()
        .map(|operation| Cell {
            ns: mine.summary(&operation),
            vs_native: (job > 0).then(|| mine.ratio(&operation, native, &operation)).flatten(),
            vs_floor: floor::below(&operation)
                .filter(|_| job > 0)
                .and_then(|floor| mine.ratio(&operation, floors, floor)),
            operation,
        })
        .collect()
}

impl SyscallReport {
    /// The table: operations down, configurations across, the floor below.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        let Some((floor, configs)) = self.columns.split_last() else { return String::new() };
        let headings = std::iter::once("operation").chain(configs.iter().map(|c| c.name.as_str()));
        let headings: Vec<String> = headings.map(str::to_owned).collect();
        let mut rows = Vec::new();
        for cell in configs.first().map(|native| native.cells.as_slice()).unwrap_or_default() {
            let across = configs.iter().map(|column| column.shown(&cell.operation));
            rows.push(std::iter::once(cell.operation.clone()).chain(across).collect());
        }
        for cell in &floor.cells {
            rows.push(vec![format!("floor: {}", cell.operation), cell.shown()]);
        }
        let mut text = format!("{}\n", table::draw(style, &headings, rows));
        text += &self.notes();
        text
    }

    fn notes(&self) -> String {
        let mut text = String::new();
        for column in &self.columns {
            if let Some(why) = &column.failure {
                text += &format!("{}: {why}\n", column.name);
            }
            for cell in &column.cells {
                match (&cell.ns, cell.vs_floor) {
                    (Err(why), _) => {
                        text += &format!("{}: {}: {why}\n", column.name, cell.operation);
                    }
                    (_, Some(ratio)) if column.kind == Kind::Dewar => {
                        text += &format!("{}: {}: ", column.name, cell.operation);
                        text += &format!("{:.2} × its floor ", ratio.value);
                        text += &format!("({:.2} … {:.2})\n", ratio.low, ratio.high);
                    }
                    _ => {}
                }
            }
        }
        text + &format!("{} rounds; {}\n", self.plan.rounds, self.machine)
    }
}

impl Column {
    fn shown(&self, operation: &str) -> String {
        match self.cells.iter().find(|cell| cell.operation == operation) {
            Some(cell) => cell.shown(),
            None => "failed".to_owned(),
        }
    }
}

impl Cell {
    fn shown(&self) -> String {
        match (&self.ns, self.vs_native) {
            (Err(_), _) => "refused".to_owned(),
            (Ok(ns), None) => table::seconds(ns.median / 1e9),
            (Ok(ns), Some(ratio)) => {
                format!("{} ({:.2} ×)", table::seconds(ns.median / 1e9), ratio.value)
            }
        }
    }
}
