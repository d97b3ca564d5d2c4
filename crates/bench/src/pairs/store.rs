//! Every sample as a line of JSON, written while it is measured: nothing is lost by an interrupt,
//! and what was begun is continued from there.

use super::{Experiment, Sample, Stop};
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{self, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// The first: what is compared.
    Experiment(Box<Experiment>),
    /// One unit under one setting.
    Sample(Sample),
    /// What cannot be had.
    Failure(Failure),
    /// The last for now: why it ended, and how many seconds it had taken in all.
    End { stop: Stop, seconds: f64 },
}

/// A setting that cannot be had, altogether or for one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which setting.
    pub setting: usize,
    /// Which subject; `None` for all of them.
    pub subject: Option<usize>,
    /// Why.
    pub why: String,
}

/// Why samples could not be kept, or not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file system refuses.
    #[error("cannot use `{}`: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is something else in the file.
    #[error("`{}` holds no samples: {why}", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file belongs to another experiment.
    #[error(
        "`{}` holds an experiment with other {differs}; name another file, or remove this one",
        path.display()
    )]
    Other {
        /// Which file.
        path: PathBuf,
        /// What differs.
        differs: &'static str,
    },
}

/// What a file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// What is compared.
    pub experiment: Experiment,
    /// What was measured.
    pub samples: Vec<Sample>,
    /// What cannot be had.
    pub failures: Vec<Failure>,
    /// Why it ended.
    pub stop: Stop,
    /// Seconds that it took in all.
    pub seconds: f64,
}

/// Where samples are kept.
#[derive(Clone, Debug)]
pub struct RawFile {
    /// The file.
    pub path: PathBuf,
    /// Opens it to read and to write, and makes it if it is not there.
    pub open: fn(&Path) -> io::Result<File>,
}

/// A file of samples, or nothing that is kept.
#[derive(Debug)]
pub struct Store {
    file: Option<(File, PathBuf)>,
    kept: Kept,
    pending: String,
}

impl Store {
    /// Keeps nothing.
    #[must_use]
    pub fn nowhere(experiment: Experiment) -> Self {
        Self { file: None, kept: Kept::new(experiment), pending: String::new() }
    }

    /// Begins the file `raw`, if there is to be one, or continues what was begun there: then units
    /// and machine are those of the file.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; also if the file belongs to another experiment.
    pub fn open(raw: Option<RawFile>, experiment: Experiment) -> Result<Self, StoreError> {
        let Some(RawFile { path, open }) = raw else { return Ok(Self::nowhere(experiment)) };
        let fails = |source| StoreError::File { path: path.clone(), source };
        let mut file = open(&path).map_err(fails)?;
        let text = io::read_to_string(&mut file).map_err(fails)?;
        if text.is_empty() {
            let mut store = Self::nowhere(experiment.clone());
            store.file = Some((file, path));
            store.write(&Line::Experiment(Box::new(experiment)));
            store.flush()?;
            return Ok(store);
        }
        let (kept, whole) =
            parse(&text).map_err(|why| StoreError::Foreign { path: path.clone(), why })?;
        if let Some(differs) = difference(&kept.experiment, &experiment) {
            return Err(StoreError::Other { path, differs });
        }
        // A line that somebody was killed over.
        file.set_len(whole as u64).map_err(fails)?;
        file.seek(SeekFrom::End(0)).map_err(fails)?;
        let kept =
            Kept { experiment: Experiment { aim: experiment.aim, ..kept.experiment }, ..kept };
        Ok(Self { file: Some((file, path)), kept, pending: String::new() })
    }

    /// What there is so far.
    #[must_use]
    pub const fn kept(&self) -> &Kept {
        &self.kept
    }

    /// What there is in the end.
    #[must_use]
    pub fn into_kept(self) -> Kept {
        self.kept
    }

    pub(super) fn sample(&mut self, sample: Sample) {
        self.kept.samples.push(sample);
        self.write(&Line::Sample(sample));
    }

    pub(super) fn failure(&mut self, failure: Failure) {
        self.kept.failures.push(failure.clone());
        self.write(&Line::Failure(failure));
    }

    pub(super) fn end(&mut self, stop: Stop, seconds: f64) -> Result<(), StoreError> {
        (self.kept.stop, self.kept.seconds) = (stop, seconds);
        self.write(&Line::End { stop, seconds });
        self.flush()
    }

    /// Writes what is pending.
    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        let pending = std::mem::take(&mut self.pending);
        if let Some((file, path)) = &mut self.file {
            let written = file.write_all(pending.as_bytes());
            written.map_err(|source| StoreError::File { path: path.clone(), source })?;
        }
        Ok(())
    }

    fn write(&mut self, line: &Line) {
        if self.file.is_some() {
            // Numbers, words and lists of them are never refused.
            self.pending += &serde_json::to_string(line).unwrap_or_default();
            self.pending.push('\n');
        }
    }
}

impl Kept {
    fn new(experiment: Experiment) -> Self {
        let (samples, failures) = (Vec::new(), Vec::new());
        Self { experiment, samples, failures, stop: Stop::Interrupted, seconds: 0.0 }
    }
}

/// Reads what a file holds.
///
/// # Errors
///
/// [`StoreError`].
pub fn read(path: &Path) -> Result<Kept, StoreError> {
    let fails = |source| StoreError::File { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(fails)?;
    let foreign = |why| StoreError::Foreign { path: path.to_owned(), why };
    parse(&text).map(|(kept, _)| kept).map_err(foreign)
}

/// What a text holds, and how many of its bytes are whole lines.
fn parse(text: &str) -> Result<(Kept, usize), String> {
    let mut whole = 0;
    let mut kept: Option<Kept> = None;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if !line.ends_with('\n') {
            break;
        }
        let read =
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
        match (read, &mut kept) {
            (Line::Experiment(experiment), None) => kept = Some(Kept::new(*experiment)),
            (Line::Sample(sample), Some(kept)) if kept.knows(&sample) => kept.samples.push(sample),
            (Line::Failure(failure), Some(kept)) => kept.failures.push(failure),
            (Line::End { stop, seconds }, Some(kept)) => {
                (kept.stop, kept.seconds) = (stop, seconds);
            }
            _ => return Err(format!("line {} is out of place", number + 1)),
        }
        whole += line.len();
    }
    Ok((kept.ok_or("it has no first line")?, whole))
}

impl Kept {
    /// Why a setting cannot be had for a subject, if so.
    #[must_use]
    pub fn failure(&self, subject: usize, setting: usize) -> Option<&str> {
        let concerned = |it: &&Failure| {
            it.setting == setting && it.subject.is_none_or(|failed| failed == subject)
        };
        self.failures.iter().find(concerned).map(|it| it.why.as_str())
    }

    fn knows(&self, sample: &Sample) -> bool {
        let subject = self.experiment.subjects.get(sample.subject);
        subject.is_some_and(|subject| sample.unit < subject.units.len())
            && sample.setting < self.experiment.settings.len()
    }
}

/// What makes the one no continuation of the other.
fn difference(kept: &Experiment, wanted: &Experiment) -> Option<&'static str> {
    let subjects = |experiment: &Experiment| {
        experiment.subjects.iter().map(|s| (s.name.clone(), s.units.len())).collect::<Vec<_>>()
    };
    let host = |experiment: &Experiment| {
        (experiment.machine.cpu.clone(), experiment.machine.kernel.clone())
    };
    if kept.name != wanted.name || kept.title != wanted.title {
        return Some("work");
    }
    if subjects(kept) != subjects(wanted) {
        return Some("subjects");
    }
    if kept.settings != wanted.settings {
        return Some("settings");
    }
    (host(kept) != host(wanted)).then_some("machine")
}
