//! What configurations are measured with.

use crate::{
    sample, walk,
    worker::{Task, Worker},
};
use std::{ffi::OsString, io, path::Path, sync::Arc};

/// Fills a new, empty workspace.
pub type Fill = Arc<dyn Fn(&Path) -> io::Result<()> + Send + Sync>;

/// Where the time of a run is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// From start to end of the whole command.
    Wall,
    /// The seconds that the command prints.
    Printed,
}

/// A command, with what goes before and after it.
#[derive(Clone)]
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
    /// Makes the workspace what it must be; `None` for a command that runs in the current directory.
    pub fill: Option<Fill>,
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
            ..Self::custom(Vec::new(), Vec::new())
        }
        .filled_by(sample::write)
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
        Self { title: "start of true".to_owned(), ..Self::custom(vec!["true".into()], Vec::new()) }
            .filled_by(|_| Ok(()))
    }

    /// The walk over a tree.
    #[must_use]
    pub fn walk(worker: Worker) -> Self {
        Self {
            title: format!("{} × (open, fstat, read, close, access, stat)", walk::FILES),
            clock: Clock::Printed,
            ..Self::custom(worker.command(Task::Walk), Vec::new())
        }
        .filled_by(move |workspace| {
            worker.install(workspace)?;
            walk::write_tree(workspace)
        })
    }

    fn filled_by(self, fill: impl Fn(&Path) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { fill: Some(Arc::new(fill)), ..self }
    }
}
