//! One workload under several configurations, on several media: what each costs against native and base.

use crate::{
    config::{Config, Kind},
    interrupt::Interrupt,
    machine::Machine,
    process::CommandLine,
    runner::{self, Job, Measurement, Plan, Progress, Runs},
    statistics::{Ratio, Summary, median_of},
    workload::{Clock, Workload},
};
use serde::Serialize;
use std::{
    env, io,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Where workspaces lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Medium {
    /// What tables call it.
    pub name: String,
    /// The directory in which workspaces are made.
    pub parent: PathBuf,
}

impl Medium {
    /// On disk, as far as `/var/tmp` is.
    #[must_use]
    pub fn disk() -> Self {
        Self { name: "disk".to_owned(), parent: "/var/tmp".into() }
    }

    /// In memory.
    #[must_use]
    pub fn memory() -> Self {
        Self { name: "memory".to_owned(), parent: "/dev/shm".into() }
    }

    /// A new workspace, filled; removed when dropped.
    pub(crate) fn workspace(
        &self,
        fill: &dyn Fn(&Path) -> io::Result<()>,
    ) -> Result<TempDir, ComparisonError> {
        tempfile::Builder::new()
            .prefix("dewar-bench-")
            .tempdir_in(&self.parent)
            .and_then(|made| fill(made.path()).map(|()| made))
            .map_err(|source| ComparisonError::Workspace { parent: self.parent.clone(), source })
    }
}

/// What is compared.
#[derive(Clone)]
pub struct Comparison {
    /// What each configuration runs.
    pub workload: Workload,
    /// The configurations, native first.
    pub configs: Vec<Config>,
    /// Where the workspaces lie. Not looked at by a workload that brings its own directory.
    pub media: Vec<Medium>,
    /// How often.
    pub plan: Plan,
}

/// Why a comparison did not take place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComparisonError {
    /// A workspace could not be made or filled.
    #[error("cannot prepare a workspace in `{}`: {source}", parent.display())]
    Workspace {
        /// Where.
        parent: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Neither a handler for signals nor a current directory could be had.
    #[error("cannot run the benchmark: {0}")]
    Run(#[from] io::Error),
}

/// One configuration on one medium.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The configuration's name.
    pub name: String,
    /// The part it plays.
    pub kind: Kind,
    /// Where the workspace lay; `None` for a directory of the person's choice.
    pub medium: Option<String>,
    /// What it took, or why that is not known.
    pub figures: Result<Figures, String>,
}

/// What a configuration took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Seconds.
    pub time_s: Summary,
    /// Median of processor time, in programs and for them in the kernel, in seconds.
    pub cpu_s: f64,
    /// Processor time against native, which a busy machine disturbs less; for Dewar's own configurations and
    /// base, which wait for all their processes.
    pub cpu_vs_native: Option<Ratio>,
    /// Largest resident set of any process of any run.
    pub max_rss_kib: u64,
    /// Against native on the same medium; `None` for native.
    pub vs_native: Option<Ratio>,
    /// Against base on the same medium; for Dewar's own configurations only.
    pub vs_base: Option<Ratio>,
}

/// What came of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The workload's title.
    pub title: String,
    /// Where and when.
    pub machine: Machine,
    /// How often, and the seed of the order.
    pub plan: Plan,
    /// The configurations, as given.
    pub configs: Vec<Config>,
    /// By medium, then by configuration.
    pub rows: Vec<Row>,
    /// Every run as it was; `job` counts through `rows`.
    #[serde(flatten)]
    pub runs: Runs,
}

/// A directory for runs, removed when they are over unless it is the person's own.
enum Workspace {
    Made(TempDir, String),
    Own(PathBuf),
}

impl Workspace {
    fn path(&self) -> &Path {
        match self {
            Self::Made(directory, _) => directory.path(),
            Self::Own(path) => path,
        }
    }

    fn medium(&self) -> Option<String> {
        match self {
            Self::Made(_, medium) => Some(medium.clone()),
            Self::Own(_) => None,
        }
    }
}

impl Comparison {
    /// Runs all of it; tells `progress` what comes next.
    ///
    /// # Errors
    ///
    /// [`ComparisonError`]. A configuration that fails is a row that says why, not an error.
    pub fn run(&self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Report, ComparisonError> {
        // Before there is something to be removed.
        let interrupt = Interrupt::notice()?;
        let machine = Machine::here();
        let workspaces = self.workspaces()?;
        let cells: Vec<(&Workspace, &Config)> = workspaces
            .iter()
            .flat_map(|workspace| self.configs.iter().map(move |config| (workspace, config)))
            .collect();
        let jobs: Vec<Job> =
            cells.iter().map(|(workspace, config)| self.job(workspace, config)).collect();
        let runs = runner::run(&jobs, self.plan, &interrupt, progress);
        let rows = (0..cells.len()).map(|cell| self.row(&cells, cell, &runs)).collect();
        Ok(Report {
            title: self.workload.title.clone(),
            machine,
            plan: self.plan,
            configs: self.configs.clone(),
            rows,
            runs,
        })
    }

    fn workspaces(&self) -> Result<Vec<Workspace>, ComparisonError> {
        let Some(fill) = &self.workload.fill else {
            return Ok(vec![Workspace::Own(env::current_dir()?)]);
        };
        let make = |medium: &Medium| {
            let made =
                tempfile::Builder::new().prefix("dewar-bench-").tempdir_in(&medium.parent)?;
            fill(made.path())?;
            Ok(Workspace::Made(made, medium.name.clone()))
        };
        self.media
            .iter()
            .map(|medium| {
                make(medium).map_err(|source| ComparisonError::Workspace {
                    parent: medium.parent.clone(),
                    source,
                })
            })
            .collect()
    }

    fn job(&self, workspace: &Workspace, config: &Config) -> Job {
        let alone = |argv: &[_]| CommandLine { argv: argv.to_vec(), env: Vec::new() };
        Job {
            name: match workspace.medium() {
                Some(medium) => format!("{} ({medium})", config.name),
                None => config.name.clone(),
            },
            command: CommandLine {
                argv: config.command_line(workspace.path(), &self.workload.command),
                env: config.env.clone(),
            },
            directory: workspace.path().to_owned(),
            prepare: alone(&self.workload.prepare),
            verify: alone(&self.workload.verify),
        }
    }

    fn row(&self, cells: &[(&Workspace, &Config)], cell: usize, runs: &Runs) -> Row {
        let (workspace, config) = cells[cell];
        let beside = |kind: Kind| {
            let same = |other: &(&Workspace, &Config)| {
                other.1.kind == kind && std::ptr::eq(other.0, workspace)
            };
            cells.iter().position(same).filter(|other| *other != cell)
        };
        let time = |m: &Measurement| self.time(m);
        let ratio = |other: Option<usize>| ratio(runs, cell, other?, &time);
        let (native, base) = (beside(Kind::Native), beside(Kind::Base));
        let ours = matches!(config.kind, Kind::Base | Kind::Dewar);
        let figures = match runs.failure(cell) {
            Some(why) => Err(why.to_owned()),
            None => self
                .figures(runs, cell)
                .map(|figures| Figures {
                    vs_native: ratio(native),
                    vs_base: ratio(base.filter(|_| config.kind == Kind::Dewar)),
                    cpu_vs_native: native
                        .filter(|_| ours)
                        .and_then(|native| self::ratio(runs, cell, native, &|m| Some(cpu(m)))),
                    ..figures
                })
                .ok_or_else(|| "not run".to_owned()),
        };
        Row { name: config.name.clone(), kind: config.kind, medium: workspace.medium(), figures }
    }

    fn figures(&self, runs: &Runs, job: usize) -> Option<Figures> {
        let measured = || runs.measured(job).map(|(_, measurement)| measurement);
        let times: Vec<f64> = measured().filter_map(|m| self.time(m)).collect();
        let cpu: Vec<f64> = measured().map(cpu).collect();
        Some(Figures {
            time_s: Summary::of(&times)?,
            cpu_s: median_of(&cpu)?,
            max_rss_kib: measured().map(|m| m.max_rss_kib).max()?,
            vs_native: None,
            vs_base: None,
            cpu_vs_native: None,
        })
    }

    fn time(&self, measurement: &Measurement) -> Option<f64> {
        match self.workload.clock {
            Clock::Wall => Some(measurement.wall_s),
            Clock::Printed => measurement.printed.trim().parse().ok(),
        }
    }
}

fn cpu(measurement: &Measurement) -> f64 {
    measurement.user_s + measurement.system_s
}

/// The ratio of what `read` finds, over the rounds in which both jobs were measured.
fn ratio(
    runs: &Runs,
    job: usize,
    other: usize,
    read: &dyn Fn(&Measurement) -> Option<f64>,
) -> Option<Ratio> {
    let compared =
        |round: usize| runs.measured(other).find(|(r, _)| *r == round).and_then(|(_, m)| read(m));
    let pairs: Vec<(f64, f64)> =
        runs.measured(job).filter_map(|(round, m)| Some((read(m)?, compared(round)?))).collect();
    Ratio::of(&pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn config(name: &str, kind: Kind, prefix: &[&str]) -> Config {
        Config::new(name, kind, prefix, "")
    }

    fn compare(configs: Vec<Config>, script: &str, clock: Clock) -> Report {
        let command: Vec<OsString> = ["sh", "-c", script].map(Into::into).to_vec();
        let workload = Workload {
            clock,
            fill: Some(std::sync::Arc::new(|_| Ok(()))),
            ..Workload::custom(command, Vec::new())
        };
        let media = vec![Medium::memory()];
        let plan = Plan { rounds: 3, ..Plan::default() };
        Comparison { workload, configs, media, plan }.run(&mut |_| {}).expect("a report")
    }

    #[test]
    fn times_are_compared_with_native_and_dewar_s_with_base_too() {
        let report = compare(
            vec![
                Config::native(),
                config("base", Kind::Base, &["env", "T=2"]),
                config("all", Kind::Dewar, &["env", "T=3"]),
                config("peer", Kind::Peer, &["env", "T=4"]),
            ],
            "echo ${T:-1}",
            Clock::Printed,
        );
        let ratios: Vec<(Option<f64>, Option<f64>)> = report
            .rows
            .iter()
            .map(|row| row.figures.as_ref().expect("figures"))
            .map(|f| (f.vs_native.map(|r| r.value), f.vs_base.map(|r| r.value)))
            .collect();
        let want = [(None, None), (Some(2.0), None), (Some(3.0), Some(1.5)), (Some(4.0), None)];
        assert_eq!(ratios, want);
    }

    #[test]
    fn a_configuration_that_cannot_run_is_a_row_that_says_why() {
        let broken = config("broken", Kind::Peer, &["no-such-sandbox", "{workspace}", "--"]);
        let report = compare(vec![Config::native(), broken], "true", Clock::Wall);
        assert!(report.rows[0].figures.is_ok());
        let why = report.rows[1].figures.as_ref().expect_err("it cannot run");
        assert!(why.starts_with("cannot run `no-such-sandbox`"), "{why}");
    }
}
