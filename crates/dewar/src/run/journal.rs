//! The records of past runs, for `dewar explain`.

use super::{RunRequest, owner::History, prepare::POLICY_NAME};
use crate::control::Change;
use anyhow::{Context as _, anyhow};
use monitor::{Record, Report, Stats};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    fs::{DirBuilder, File, Permissions},
    io::{Read, Seek, Write},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

/// Records kept; older ones are thrown away when the next run begins.
const MOST_RUNS: usize = 200;

/// What is kept of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunRecord {
    /// What `dewar ps` called it.
    pub(crate) id: String,
    /// What `dewar run --name` called it.
    pub(crate) name: Option<String>,
    /// Seconds since 1970.
    pub(crate) time: f64,
    /// The command and its arguments.
    pub(crate) command: Vec<String>,
    /// The profile.
    pub(crate) profile: String,
    /// The exit status that a shell would show.
    pub(crate) status: i32,
    /// Decisions by object manager.
    pub(crate) decisions: Vec<Decisions>,
    /// Denials, each kind once.
    pub(crate) denials: Vec<Denial>,
    /// Kinds of denial that were not kept.
    pub(crate) dropped: u64,
    /// What the kernel refused root although policy grants it, by the capability that would have helped.
    #[serde(default)]
    pub(crate) lacking: Vec<(String, u64)>,
    /// Changes of its policy.
    pub(crate) changes: Vec<Change>,
}

/// How many decisions an object manager asked for, and where they were found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Decisions {
    pub(crate) manager: String,
    pub(crate) queries: u64,
    pub(crate) hint: u64,
    pub(crate) cache: u64,
    pub(crate) server: u64,
}

/// A denial, and where in the profile the rules that bear on it stand.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Denial {
    #[serde(flatten)]
    pub(crate) record: Record,
    /// `FILE:LINE: TEXT` of the profile for each rule that has a place there.
    pub(crate) profile_rules: Vec<String>,
}

impl RunRecord {
    pub(super) fn new(
        request: &RunRequest,
        (id, profile): (&str, &str),
        report: &Report,
        history: &History,
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            id: id.to_owned(),
            name: request.name.clone(),
            time: now.as_secs_f64(),
            command: request
                .command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            profile: profile.to_owned(),
            status: report.outcome.status(),
            decisions: report
                .decisions
                .iter()
                .map(|(name, stats)| decisions(name, *stats))
                .collect(),
            denials: report.denials.iter().map(|record| denial(history, record)).collect(),
            dropped: report.dropped,
            lacking: report
                .lacking
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
            changes: history.changes.clone(),
        }
    }

    /// Denials, repetitions counted.
    pub(crate) fn denied(&self) -> u64 {
        self.denials.iter().map(|denial| denial.record.count).sum()
    }
}

/// How an object manager's decisions are told.
pub(super) fn decisions(name: &str, stats: Stats) -> Decisions {
    Decisions {
        manager: name.to_owned(),
        queries: stats.queries(),
        hint: stats.hint,
        cache: stats.cache,
        server: stats.server,
    }
}

fn denial(history: &History, record: &Record) -> Denial {
    let mut profile_rules = Vec::new();
    if let Some(compiled) = history.policy(record.seqno) {
        let lines = record.rules.iter().filter_map(|rule| policy_line(rule));
        let granting = lines.filter_map(|line| compiled.origin(line));
        let (subject, object) = (type_of(&record.scontext), type_of(&record.tcontext));
        let missing: Vec<&str> = record.missing.iter().map(String::as_str).collect();
        let revoked = compiled.revoked(subject, object, &missing);
        let withheld = revoked.or_else(|| compiled.withheld(subject, object));
        profile_rules.extend(granting.chain(withheld).map(|origin| origin.to_string()));
    }
    Denial { record: record.clone(), profile_rules }
}

/// The type in a security context.
fn type_of(context: &str) -> &str {
    context.split(':').nth(2).unwrap_or_default()
}

/// The line of the compiled policy that a rule in an explanation stands in.
fn policy_line(rule: &str) -> Option<usize> {
    let place = rule.split(|c: char| c.is_whitespace() || "()[]".contains(c));
    let mut places = place.filter_map(|word| word.strip_prefix(POLICY_NAME)?.strip_prefix(':'));
    places.find_map(|rest| rest.split(':').next()?.parse().ok())
}

/// The record that a run will leave. Opened before the run, because the sandbox's view may leave it out.
pub(crate) struct Journal {
    file: File,
}

impl Journal {
    /// Makes room for one more record, and begins it.
    pub(super) fn open() -> anyhow::Result<Self> {
        let directory = directory()?;
        let make = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        // Others need not know what is run, or what it was denied.
        let close = || std::fs::set_permissions(&directory, Permissions::from_mode(0o700));
        make.and_then(|()| close())
            .with_context(|| format!("cannot create `{}`", directory.display()))?;
        let runs = runs()?;
        for old in runs.iter().take((runs.len() + 1).saturating_sub(MOST_RUNS)) {
            // Another run may be faster.
            let _ = std::fs::remove_file(directory.join(old));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{:020}-{}.json", now.as_nanos(), std::process::id());
        let path = directory.join(name);
        let file = File::create_new(&path)
            .with_context(|| format!("cannot create `{}`", path.display()))?;
        Ok(Self { file })
    }

    /// Writes the record.
    pub(super) fn keep(mut self, record: &RunRecord) -> anyhow::Result<()> {
        self.file.write_all(&serde_json::to_vec(record)?)?;
        self.file.flush()?;
        self.file.rewind()?;
        Ok(())
    }

    /// The last finished run.
    pub(crate) fn last() -> anyhow::Result<RunRecord> {
        let directory = directory()?;
        for name in runs()?.into_iter().rev() {
            let mut text = String::new();
            File::open(directory.join(name))?.read_to_string(&mut text)?;
            // A run that goes on has an empty record, and one that was killed a broken one.
            if let Ok(record) = serde_json::from_str(&text) {
                return Ok(record);
            }
        }
        Err(anyhow!("no run has been recorded yet; start one with `dewar run -- COMMAND`"))
    }
}

/// `$XDG_STATE_HOME/dewar/runs`, or its default.
fn directory() -> anyhow::Result<PathBuf> {
    Ok(runs::state_directory()?.join("dewar/runs"))
}

/// The names of the records there are, the oldest first.
fn runs() -> anyhow::Result<Vec<OsString>> {
    let directory = directory()?;
    let entries = match std::fs::read_dir(&directory) {
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
