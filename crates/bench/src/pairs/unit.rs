//! Units of work, and the runner that performs them inside a setting: requests on standard input,
//! answers on standard output, a line of JSON each.

use crate::{operation, sys, walk};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    io::{self, BufRead, Write},
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};
use wait4::Wait4 as _;

/// What a runner is asked to do once, in its working directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A command, run to its end.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Files that are removed before, outside of the time.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remove: Vec<String>,
        /// A command that is run before, outside of the time; nothing if empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        before: Vec<String>,
    },
    /// Some files of the walk.
    Walk {
        /// The first of them.
        from: usize,
        /// How many.
        count: usize,
    },
    /// One operation, many times.
    Operation {
        /// Its name.
        name: String,
        /// How many times.
        times: u32,
    },
    /// A test of the classic suite, many times.
    Suite {
        /// Its name.
        name: String,
        /// How many times.
        times: u32,
    },
}

impl Unit {
    /// A command without anything around it.
    #[must_use]
    pub fn command(argv: &[&str]) -> Self {
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        Self::Command { argv, remove: Vec::new(), before: Vec::new() }
    }

    /// The same, so many times as often; a command stays one.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        let scaled = |times: u32| (f64::from(times) * factor).round().clamp(1.0, 1e9) as u32;
        match self {
            Self::Command { .. } | Self::Walk { .. } => self.clone(),
            Self::Operation { name, times } => {
                Self::Operation { name: name.clone(), times: scaled(*times) }
            }
            Self::Suite { name, times } => {
                Self::Suite { name: name.clone(), times: scaled(*times) }
            }
        }
    }

    /// How often it does what it does.
    #[must_use]
    pub const fn count(&self) -> f64 {
        match self {
            Self::Command { .. } => 1.0,
            Self::Walk { count, .. } => *count as f64,
            Self::Operation { times, .. } | Self::Suite { times, .. } => *times as f64,
        }
    }
}

/// What a unit took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// Seconds of the wall.
    pub wall_s: f64,
    /// Seconds of processor time, of all that took part as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// Seconds by the clock of whatever does the work, without the way there and back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside_s: Option<f64>,
}

/// What a runner answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer {
    Took(Took),
    Failed(String),
}

/// Performs units as they are asked for, until nobody asks any more. Meant for a process with one
/// thread.
///
/// # Errors
///
/// When nobody hears the answer, or a request cannot be read.
pub fn serve(requests: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    let here = Path::new(".").canonicalize()?;
    let mut worker = Worker { here: &here, paths: None, operations: None };
    for request in requests.lines() {
        let unit: Unit = serde_json::from_str(&request?)?;
        let answer = match worker.perform(&unit) {
            Ok(took) => Answer::Took(took),
            Err(error) => Answer::Failed(error.to_string()),
        };
        let line = serde_json::to_string(&answer)? + "\n";
        answers.write_all(line.as_bytes())?;
        answers.flush()?;
    }
    Ok(())
}

struct Worker<'a> {
    here: &'a Path,
    /// Those of the walk, once it is asked for.
    paths: Option<Vec<std::path::PathBuf>>,
    operations: Option<operation::Operations>,
}

impl Worker<'_> {
    fn perform(&mut self, unit: &Unit) -> io::Result<Took> {
        match unit {
            Unit::Command { argv, remove, before } => command(argv, remove, before),
            Unit::Walk { from, count } => {
                if self.paths.is_none() {
                    self.paths = Some(walk::paths(self.here)?);
                }
                let paths = self.paths.as_deref().unwrap_or_default();
                timed(|| walk::visit_some(paths, *from, *count))
            }
            Unit::Operation { name, times } => {
                if self.operations.is_none() {
                    self.operations = Some(operation::Operations::prepare(self.here)?);
                }
                let operations = self.operations.as_mut().map(|all| all.by_name(name));
                let operation = operations.flatten().ok_or_else(|| {
                    io::Error::new(io::ErrorKind::NotFound, format!("no operation `{name}`"))
                })?;
                timed(|| (0..*times).try_for_each(|_| operation()))
            }
            Unit::Suite { .. } => Err(io::Error::other("the suite has a runner of its own")),
        }
    }
}

fn timed(work: impl FnOnce() -> io::Result<()>) -> io::Result<Took> {
    let (cpu, begin) = (sys::own_and_children_time(), Instant::now());
    work()?;
    let wall_s = begin.elapsed().as_secs_f64();
    let cpu = sys::own_and_children_time().saturating_sub(cpu);
    Ok(Took { wall_s, cpu_s: Some(cpu.as_secs_f64()), inside_s: None })
}

fn command(argv: &[String], remove: &[String], before: &[String]) -> io::Result<Took> {
    for file in remove {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    if !before.is_empty() {
        run(before)?;
    }
    run(argv)
}

/// Runs a command with nothing to read, whose words go nowhere unless it fails.
pub(super) fn run(argv: &[String]) -> io::Result<Took> {
    let (program, arguments) =
        argv.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
    let mut said = tempfile::tempfile_in(".").or_else(|_| tempfile::tempfile())?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?);
    let begin = Instant::now();
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("cannot run `{program}`: {error}"));
    let child = command.spawn().map_err(named)?;
    let used = child.wait4()?;
    let wall_s = begin.elapsed().as_secs_f64();
    if !used.status.success() {
        let words = crate::process::last_words(&mut said);
        return Err(io::Error::other(format!("`{program}`: {}: {words}", used.status)));
    }
    let cpu_s = Some((used.rusage.utime + used.rusage.stime).as_secs_f64());
    Ok(Took { wall_s, cpu_s, inside_s: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(units: &[Unit]) -> Vec<Answer> {
        let requests: String =
            units.iter().map(|unit| serde_json::to_string(unit).expect("JSON") + "\n").collect();
        let mut answered = Vec::new();
        serve(requests.as_bytes(), &mut answered).expect("a runner");
        let text = String::from_utf8(answered).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn a_station_performs_what_it_is_asked_for_and_says_what_failed() {
        let answered = answers(&[
            Unit::command(&["sleep", "0.05"]),
            Unit::command(&["sh", "-c", "echo no luck >&2; exit 3"]),
            Unit::command(&["no-such-program"]),
        ]);
        assert!(matches!(&answered[0], Answer::Took(took) if took.wall_s >= 0.05), "{answered:?}");
        assert!(
            matches!(&answered[1], Answer::Failed(why) if why.contains("exit status: 3: no luck"))
        );
        assert!(matches!(&answered[2], Answer::Failed(why) if why.contains("`no-such-program`")));
    }

    #[test]
    fn files_are_removed_before_the_command_and_not_missed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("made").display().to_string();
        let argv = ["sh", "-c", &format!("test ! -e {file} && : > {file}")].map(str::to_owned);
        let unit = Unit::Command { argv: argv.to_vec(), remove: vec![file], before: Vec::new() };
        let answered = answers(&[unit.clone(), unit]);
        assert!(answered.iter().all(|answer| matches!(answer, Answer::Took(_))), "{answered:?}");
    }
}
