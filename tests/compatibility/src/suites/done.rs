//! Suites that have passed, in the file that `DEWAR_SUITES_DONE` names: all of them take hours, and
//! after an interruption the rest is run. A line is of one suite, one user, and one build.

use anyhow::Context as _;
use std::{
    fs::OpenOptions,
    hash::{DefaultHasher, Hasher as _},
    io::{ErrorKind, Write as _},
    path::PathBuf,
};

/// Which suites have passed.
pub(crate) struct Done {
    file: Option<PathBuf>,
    before: String,
    /// Of `dewar` and of this program: another build passes anew.
    build: u64,
}

impl Done {
    /// What the file tells; nothing without one.
    pub(crate) fn new(file: Option<PathBuf>) -> anyhow::Result<Self> {
        let mut build = DefaultHasher::new();
        if file.is_some() {
            build.write(&std::fs::read(test_support::dewar())?);
            build.write(&std::fs::read(std::env::current_exe()?)?);
        }
        let before = match file.as_ref().map(std::fs::read_to_string) {
            None => String::new(),
            Some(Err(error)) if error.kind() == ErrorKind::NotFound => String::new(),
            Some(read) => read.context("cannot read the file of suites that have passed")?,
        };
        Ok(Self { file, before, build: build.finish() })
    }

    pub(crate) fn has(&self, suite: &str, who: &str) -> bool {
        self.before.lines().any(|line| line == self.line(suite, who))
    }

    pub(crate) fn add(&self, suite: &str, who: &str) -> anyhow::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut file = OpenOptions::new().append(true).create(true).open(file)?;
        writeln!(file, "{}", self.line(suite, who)).context("cannot tell that a suite has passed")
    }

    fn line(&self, suite: &str, who: &str) -> String {
        format!("{suite}\t{who}\t{:x}", self.build)
    }
}
