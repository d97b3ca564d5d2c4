//! What is kept of a run until its record is there: for `ps` while the run is stopped, and for
//! `explain` when its monitor was killed, or its record could not be written.

use super::Status;
use anyhow::Context as _;
use monitor::visible;
use proc::Proc;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::{
    ffi::{CStr, OsString},
    fs::{File, read_link},
    io::Read as _,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

/// How the file begins that becomes the record: no JSON, so no reader takes it for a record.
const MARK: &[u8] = b"begun ";

/// A run that has begun, and has no record yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(crate) status: Status,
    /// When the monitor started, in clock ticks since boot: with its PID, that names a process.
    ticks: u64,
    /// The PID namespace that the PID is of.
    namespace: PathBuf,
    /// It has ended, and why its record could not be written.
    #[serde(default)]
    unkept: Option<String>,
}

impl Begun {
    /// Runs that have begun and have no record, the last one first.
    pub(crate) fn all() -> Vec<Self> {
        let Ok((directory, runs)) = journal_directory().and_then(|it| Ok((it, records()?))) else {
            return Vec::new();
        };
        runs.iter().rev().filter_map(|name| Self::read(&directory.join(name))).collect()
    }

    /// The last run, if it has ended without a record.
    pub(crate) fn unrecorded() -> Option<Self> {
        let directory = journal_directory().ok()?;
        let mut begun =
            records().ok()?.into_iter().rev().map(|name| Self::read(&directory.join(name)));
        // One that goes on does not count.
        begun.find(|it| it.as_ref().is_none_or(Self::is_over))?
    }

    /// Of this process.
    ///
    /// # Errors
    ///
    /// There is no `/proc`.
    pub(crate) fn now(status: Status) -> std::io::Result<Self> {
        let ticks = Proc::open()?.started(status.pid)?;
        Ok(Self { status, ticks, namespace: namespace()?, unkept: None })
    }

    /// The same run, which has ended, and whose record could not be written.
    pub(crate) fn unkept(self, why: String) -> Self {
        Self { unkept: Some(why), ..self }
    }

    /// As it stands in a file.
    pub(crate) fn text(&self) -> serde_json::Result<Vec<u8>> {
        Ok([MARK, &serde_json::to_vec(self)?].concat())
    }

    /// Of a file in the journal; `None` of a record.
    fn read(path: &Path) -> Option<Self> {
        let mut file = runs::own_file(path).ok()?;
        let mut mark = [0; MARK.len()];
        file.read_exact(&mut mark).ok()?;
        if mark != MARK {
            return None;
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Whether an entry of the journal is of a run that has begun, and has no record yet.
    pub(crate) fn is_one(journal: impl AsFd, name: &CStr) -> bool {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut mark = [0; MARK.len()];
        let opened = rustix::fs::openat(journal, name, flags, Mode::empty());
        opened.is_ok_and(|file| File::from(file).read_exact(&mut mark).is_ok()) && mark == MARK
    }

    /// Whether it has ended, or its monitor is known to be gone.
    pub(crate) fn is_over(&self) -> bool {
        let started = || Proc::open().and_then(|proc| proc.started(self.status.pid));
        let is_gone =
            || namespace().is_ok_and(|own| own == self.namespace) && (started() != Ok(self.ticks));
        self.unkept.is_some() || is_gone()
    }

    /// What became of a run that is over.
    pub(crate) fn told(&self) -> String {
        let Status { id, name, pid, command, .. } = &self.status;
        let name = name.as_ref().map_or(String::new(), |name| format!(" ({})", visible(name)));
        let why = match &self.unkept {
            Some(why) => format!("that could not be written: {}", visible(why)),
            None => format!("its monitor, process {pid}, was killed, and the run with it"),
        };
        let command = visible(&command.join(" "));
        format!("run {id}{name}, `{command}`, ended without a record: {why}")
    }
}

fn namespace() -> std::io::Result<PathBuf> {
    read_link("/proc/self/ns/pid")
}

/// `$XDG_STATE_HOME/dewar/runs`, or its default.
pub(crate) fn journal_directory() -> anyhow::Result<PathBuf> {
    Ok(runs::state_directory()?.join("dewar/runs"))
}

/// Why no record can be kept, where that is so.
pub(crate) fn unwritable() -> Option<String> {
    let directory = journal_directory().ok()?;
    let place = directory.ancestors().find(|place| place.exists())?;
    let error = match place.is_dir() {
        true => rustix::fs::access(place, rustix::fs::Access::WRITE_OK).err()?,
        false => rustix::io::Errno::NOTDIR,
    };
    Some(format!(
        "no record of a run can be kept here: `{}`: {error}; XDG_STATE_HOME names another place",
        visible(&place.to_string_lossy())
    ))
}

/// The names of the records there are, the oldest first.
pub(crate) fn records() -> anyhow::Result<Vec<OsString>> {
    let directory = journal_directory()?;
    let own = runs::open_own(&directory);
    let entries = match own.and_then(|_| std::fs::read_dir(&directory)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read `{}`", directory.display()));
        }
    };
    let mut runs: Vec<OsString> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
    runs.sort_unstable();
    Ok(runs)
}
