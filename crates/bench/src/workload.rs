//! What configurations are measured with.

use crate::{sample, walk};
use std::{ffi::OsString, io, path::Path};

/// Where the time of a run is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// From start to end of the whole command.
    Wall,
    /// The seconds that the command prints.
    Printed,
}

/// A command, with what goes before and after it.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What tables call it.
    pub title: String,
    /// What is measured.
    pub command: Vec<OsString>,
    /// Where its time is read.
    pub clock: Clock,
    /// Runs before each measurement, natively and outside it; nothing if empty.
    pub prepare: Vec<OsString>,
    /// Runs after each measurement, natively and outside it, and must print the same for every configuration;
    /// nothing if empty.
    pub verify: Vec<OsString>,
    /// Fills a new, empty workspace; `None` for a command that runs in a directory of the person's choice.
    pub fill: Option<fn(&Path) -> io::Result<()>>,
}

impl Workload {
    /// The sample application, compiled and linked by so many jobs of `make`.
    #[must_use]
    pub fn sample(jobs: usize) -> Self {
        Self {
            title: format!("build of the sample application (make -j{jobs})"),
            command: vec!["make".into(), "-s".into(), format!("-j{jobs}").into()],
            prepare: vec!["make".into(), "-s".into(), "clean".into()],
            verify: vec![sample::PROGRAM.into()],
            fill: Some(sample::write),
            ..Self::custom(Vec::new(), Vec::new())
        }
    }

    /// Any command, with another to undo it before each run.
    #[must_use]
    pub fn custom(command: Vec<OsString>, prepare: Vec<OsString>) -> Self {
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        Self {
            title: words.join(" "),
            command,
            clock: Clock::Wall,
            prepare,
            verify: Vec::new(),
            fill: None,
        }
    }

    /// The start and end of a command that does nothing.
    #[must_use]
    pub fn start() -> Self {
        Self {
            title: "start of true".to_owned(),
            fill: Some(|_| Ok(())),
            ..Self::custom(vec!["true".into()], Vec::new())
        }
    }

    /// The walk over a tree; `worker` is the command line that runs [`crate::worker::Task::Walk`].
    #[must_use]
    pub fn walk(worker: Vec<OsString>) -> Self {
        Self {
            title: format!("{} x (open, fstat, read, close, access, stat)", walk::FILES),
            clock: Clock::Printed,
            fill: Some(walk::write_tree),
            ..Self::custom(worker, Vec::new())
        }
    }
}
