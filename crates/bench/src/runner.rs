//! Runs several jobs in turn, again and again, so that what changes on the machine meets all of them alike.

use crate::{
    interrupt::Interrupt,
    process::{CommandLine, Finished, ProcessError},
    random::Random,
};
use serde::Serialize;
use std::{path::PathBuf, time::Duration};

/// What is run in turn with others.
#[derive(Clone, Debug)]
pub struct Job {
    /// What progress calls it.
    pub name: String,
    /// What is measured.
    pub command: CommandLine,
    /// Where all three run.
    pub directory: PathBuf,
    /// Runs before each measurement, outside it; nothing if empty.
    pub prepare: CommandLine,
    /// Runs after each measurement, outside it; must print what it printed after the first job. Nothing if
    /// empty.
    pub verify: CommandLine,
}

/// How often, and in which order.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Plan {
    /// Measured rounds; one more comes before them and is ignored.
    pub rounds: usize,
    /// Of the order within rounds.
    pub seed: u64,
    /// For one run.
    pub timeout: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self { rounds: 5, seed: 1, timeout: Duration::from_secs(600) }
    }
}

/// What one run took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// Seconds from start to end.
    pub wall_s: f64,
    /// Seconds of processor time in programs.
    pub user_s: f64,
    /// Seconds of processor time in the kernel.
    pub system_s: f64,
    /// The largest resident set of any one process.
    pub max_rss_kib: u64,
    /// What it printed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub printed: String,
}

impl From<Finished> for Measurement {
    fn from(finished: Finished) -> Self {
        Self {
            wall_s: finished.wall.as_secs_f64(),
            user_s: finished.user.as_secs_f64(),
            system_s: finished.system.as_secs_f64(),
            max_rss_kib: finished.max_rss_kib,
            printed: String::from_utf8_lossy(&finished.stdout).into_owned(),
        }
    }
}

/// One run as it was, whatever became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Which job, counted from 0.
    pub job: usize,
    /// Which round; 0 is the one that does not count.
    pub round: usize,
    /// What it took, or why that is not known.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It ended well.
    Measured(Measurement),
    /// It did not, for this reason; the job is not run again.
    Failed(String),
}

/// Everything that was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Runs {
    /// In the order in which they were run.
    pub runs: Vec<Run>,
    /// The rest was not run: somebody pressed Ctrl-C.
    pub interrupted: bool,
}

impl Runs {
    /// The measurements of `job` in rounds that count, with their rounds.
    pub fn measured(&self, job: usize) -> impl Iterator<Item = (usize, &Measurement)> {
        self.runs.iter().filter(move |run| run.job == job && run.round > 0).filter_map(|run| {
            match &run.outcome {
                Outcome::Measured(measurement) => Some((run.round, measurement)),
                Outcome::Failed(_) => None,
            }
        })
    }

    /// Why `job` failed, if it did.
    #[must_use]
    pub fn failure(&self, job: usize) -> Option<&str> {
        self.runs.iter().filter(|run| run.job == job).find_map(|run| match &run.outcome {
            Outcome::Failed(why) => Some(why.as_str()),
            Outcome::Measured(_) => None,
        })
    }
}

/// What is about to be run.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Which round, from 0 to `rounds`.
    pub round: usize,
    /// Measured rounds.
    pub rounds: usize,
    /// The job's name.
    pub name: &'a str,
}

/// Runs every job once to no account, in their order, and then `plan.rounds` times, each round in another
/// order. Tells `progress` what comes. Ends early, with what there is, on Ctrl-C.
pub fn run(
    jobs: &[Job],
    plan: Plan,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Runs {
    let mut random = Random::new(plan.seed);
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    let mut expected = None;
    let mut done = Runs::default();
    for round in 0..=plan.rounds {
        if round > 0 {
            random.shuffle(&mut order);
        }
        for &job in &order {
            if done.failure(job).is_some() {
                continue;
            }
            if interrupt.happened() {
                return Runs { interrupted: true, ..done };
            }
            progress(Progress { round, rounds: plan.rounds, name: &jobs[job].name });
            let outcome = match once(&jobs[job], plan.timeout, interrupt, &mut expected) {
                Ok(finished) => Outcome::Measured(finished.into()),
                Err(RunError::Process(ProcessError::Interrupted)) => {
                    return Runs { interrupted: true, ..done };
                }
                Err(error) => Outcome::Failed(error.to_string()),
            };
            done.runs.push(Run { job, round, outcome });
        }
    }
    done
}

/// Why a run does not count.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("{0}")]
    Process(#[from] ProcessError),
    #[error("before the run: {0}")]
    Prepare(ProcessError),
    #[error("after the run: {0}")]
    Verify(ProcessError),
    #[error("the result differs from the first one")]
    Differs,
}

impl RunError {
    fn aside(error: ProcessError, kind: fn(ProcessError) -> Self) -> Self {
        match error {
            ProcessError::Interrupted => Self::Process(error),
            error => kind(error),
        }
    }
}

/// Prepares, measures, verifies.
fn once(
    job: &Job,
    timeout: Duration,
    interrupt: &Interrupt,
    expected: &mut Option<Vec<u8>>,
) -> Result<Finished, RunError> {
    let run = |command: &CommandLine| command.run(&job.directory, timeout, interrupt);
    if !job.prepare.argv.is_empty() {
        run(&job.prepare).map_err(|error| RunError::aside(error, RunError::Prepare))?;
    }
    let finished = run(&job.command)?;
    if !job.verify.argv.is_empty() {
        let result =
            run(&job.verify).map_err(|error| RunError::aside(error, RunError::Verify))?.stdout;
        if *expected.get_or_insert_with(|| result.clone()) != result {
            return Err(RunError::Differs);
        }
    }
    Ok(finished)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, time::Instant};

    fn command(script: &str) -> CommandLine {
        let argv = ["sh", "-c", script].map(Into::into).to_vec();
        CommandLine { argv, ..CommandLine::default() }
    }

    fn job(script: &str) -> Job {
        Job {
            name: script.to_owned(),
            command: command(script),
            directory: env::temp_dir(),
            prepare: CommandLine::default(),
            verify: CommandLine::default(),
        }
    }

    fn run_all(jobs: &[Job], rounds: usize) -> Runs {
        run_as(jobs, Plan { rounds, timeout: Duration::from_secs(5), ..Plan::default() })
    }

    fn run_as(jobs: &[Job], plan: Plan) -> Runs {
        let interrupt = Interrupt::notice().expect("signals can be noticed");
        run(jobs, plan, &interrupt, &mut |_| {})
    }

    #[test]
    fn every_job_runs_once_a_round_and_the_first_round_does_not_count() {
        let runs = run_all(&[job("echo a"), job("echo b"), job("echo c")], 4);
        assert_eq!(runs.runs.len(), 3 * 5);
        for number in 0..3 {
            let mut rounds: Vec<usize> = runs.measured(number).map(|(round, _)| round).collect();
            rounds.sort_unstable();
            assert_eq!(rounds, [1, 2, 3, 4]);
        }
        let printed: Vec<&str> = runs.measured(1).map(|(_, m)| m.printed.as_str()).collect();
        assert_eq!(printed, ["b\n"; 4]);
    }

    #[test]
    fn the_order_changes_from_round_to_round_and_is_the_same_in_every_benchmark() {
        let jobs: Vec<Job> = (0..4).map(|_| job("true")).collect();
        let order = |runs: &Runs| runs.runs.iter().map(|run| run.job).collect::<Vec<_>>();
        let (first, second) = (order(&run_all(&jobs, 6)), order(&run_all(&jobs, 6)));
        assert_eq!(first, second);
        assert_eq!(first[..4], [0, 1, 2, 3]);
        assert!(first.chunks(4).any(|round| round != [0, 1, 2, 3]));
    }

    #[test]
    fn a_job_that_fails_says_why_and_is_not_run_again() {
        let runs = run_all(&[job("true"), job("echo no such luck >&2; exit 3")], 3);
        assert_eq!(runs.failure(1), Some("exit status: 3: no such luck"));
        assert_eq!(runs.runs.iter().filter(|run| run.job == 1).count(), 1);
        assert_eq!(runs.measured(0).count(), 3);
        let missing = Job {
            command: CommandLine { argv: vec!["no-such-program".into()], ..CommandLine::default() },
            ..job("")
        };
        let runs = run_all(&[missing], 1);
        assert!(runs.failure(0).is_some_and(|why| why.starts_with("cannot run `no-such-program`")));
    }

    #[test]
    fn a_result_that_differs_from_the_first_job_s_is_a_failure() {
        let directory = tempfile::tempdir().expect("a directory");
        let writing = |script: &str| Job {
            prepare: command("rm -f out"),
            verify: command("cat out"),
            directory: directory.path().to_owned(),
            ..job(script)
        };
        let runs = run_all(&[writing("echo 1 > out"), writing("echo 2 > out"), writing("true")], 1);
        assert_eq!(runs.failure(0), None);
        assert_eq!(runs.failure(1), Some("the result differs from the first one"));
        assert!(
            runs.failure(2).is_some_and(|why| why.starts_with("after the run: exit status: 1"))
        );
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_the_processes_it_started() {
        let plan = Plan { rounds: 0, timeout: Duration::from_millis(300), ..Plan::default() };
        let begin = Instant::now();
        let hangs = [job("sleep 20 & sleep 20")];
        let runs = run_as(&hangs, plan);
        assert_eq!(runs.failure(0), Some("killed after 0.3 s"));
        assert!(begin.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn processor_time_and_memory_are_those_of_the_command_and_its_children() {
        let runs =
            run_all(&[job("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.1")], 1);
        let (_, measurement) = runs.measured(0).next().expect("a measurement");
        assert!(measurement.wall_s >= 0.1 && measurement.user_s > 0.01, "{measurement:?}");
        assert!((500..1 << 20).contains(&measurement.max_rss_kib), "{measurement:?}");
    }
}
