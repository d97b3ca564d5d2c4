//! The records of past runs, for `dewar explain`.

use super::{
    RunRequest, Summary,
    counts::{Spent, decisions},
    kept::{no_run, unknown},
    link::Answered,
    owner::History,
    planted::PlantedRecord,
};
use crate::control::{Begun, Decisions, Denial, PolicyChange, Status, journal_directory, records};
use anyhow::{Context as _, bail};
use cli::failure::Usage;
use monitor::{Deed, DeedKind, Record, Report};
use rustix::fs::{AtFlags, Dir, DirEntry, unlinkat};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    fs::{File, Permissions},
    io::{Seek, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    },
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
    /// When it ended, in seconds since 1970.
    pub(crate) time: f64,
    /// When it began; 0 if nobody knows.
    pub(crate) started: f64,
    /// `all` or `fast`.
    pub(crate) mode: String,
    /// The command and its arguments.
    pub(crate) command: Vec<String>,
    /// The profile.
    pub(crate) profile: String,
    /// The profile as it was named, and the directory where that was.
    pub(crate) argument: String,
    pub(crate) directory: PathBuf,
    /// What the variables of the profile stood for; what the run could not change is among them.
    pub(crate) variables: Option<profile::Variables>,
    /// The exit status that a shell would show; 0 while it goes on.
    pub(crate) status: i32,
    /// It has not ended, and this is what is on record of it so far.
    #[serde(skip)]
    pub(crate) goes_on: bool,
    /// Decisions by object manager.
    pub(crate) decisions: Vec<Decisions>,
    /// What deciding took, by system call, the dearest first; empty unless it was asked for.
    #[serde(default)]
    pub(crate) spent: Vec<Spent>,
    /// Denials, each kind once.
    pub(crate) denials: Vec<Denial>,
    /// Denials that were not kept.
    pub(crate) dropped: u64,
    /// What the kernel refused root although policy grants it, by the capability that would have
    /// helped.
    #[serde(default)]
    pub(crate) lacking: Vec<(String, u64)>,
    /// What was denied to nobody, and may be why the command failed all the same.
    pub(crate) remarks: Vec<String>,
    /// That the command was ended at a limit of its profile.
    pub(crate) time_limit: Option<String>,
    /// What the command names outside of the workspace, and did not see.
    #[serde(default)]
    pub(crate) unseen: Vec<super::unseen::Unseen>,
    /// Hosts that the profile grants and that had no address at the start, each with the domain.
    #[serde(default)]
    pub(crate) unfound: BTreeSet<(String, String)>,
    /// Variables that the profile kept out, by name or for what they hold.
    #[serde(default)]
    pub(crate) kept_out: Vec<String>,
    /// Layers that refused without a record, if they refused anything.
    pub(crate) unrecorded: Vec<String>,
    /// Changes of its policy.
    pub(crate) changes: Vec<PolicyChange>,
    /// What was asked, and answered.
    pub(crate) answers: Vec<Answered>,
    /// Whether the profile sets a guard, so that what follows was looked for.
    pub(crate) guarded: bool,
    /// What programs outside would execute because of it.
    pub(crate) planted: Vec<PlantedRecord>,
    /// How much more of that there was.
    pub(crate) planted_more: u64,
    /// How many runs began inside of it.
    #[serde(default)]
    pub(crate) runs_inside: u32,
    /// What was written, removed, executed and contacted, as far as the monitor decided it.
    pub(crate) deeds: Vec<Deed>,
    /// How much more of each kind there was.
    pub(crate) deeds_more: Vec<(DeedKind, u64)>,
}

/// The name of the compiled policy in the security server's messages.
pub(super) const POLICY_NAME: &str = "policy";

impl RunRecord {
    /// Its name, or else its id.
    pub(crate) fn called(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.id)
    }

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
            started: 0.0,
            mode: String::new(),
            command: request
                .command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            profile: profile.to_owned(),
            argument: request.profile.clone().unwrap_or_default(),
            directory: std::env::current_dir().unwrap_or_default(),
            variables: None,
            status: report.outcome.status(),
            goes_on: false,
            decisions: report
                .decisions
                .iter()
                .map(|(name, stats)| decisions(name, *stats))
                .collect(),
            spent: report.spent.iter().map(Spent::of).collect(),
            denials: report.denials.iter().map(|record| denial(history, record)).collect(),
            dropped: report.dropped,
            lacking: report
                .lacking
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
            remarks: report.remarks.clone(),
            time_limit: None,
            unfound: BTreeSet::new(),
            kept_out: Vec::new(),
            unseen: Vec::new(),
            unrecorded: report.unrecorded.iter().map(|&layer| layer.to_owned()).collect(),
            changes: history.changes.clone(),
            answers: Vec::new(),
            guarded: false,
            planted: Vec::new(),
            planted_more: report.planted_more,
            runs_inside: report.runs_inside,
            deeds: report.deeds.clone(),
            deeds_more: report.deeds_more.clone(),
        }
    }
}

pub(super) fn denial(history: &History, record: &Record) -> Denial {
    let mut profile_rules = Vec::new();
    if let Some(compiled) = history.policy(record.seqno) {
        let lines = record.rules.iter().filter_map(|rule| policy_line(rule));
        let granting = lines.filter_map(|line| compiled.origin(line));
        let (subject, object) =
            (flask::type_of(&record.scontext), flask::type_of(&record.tcontext));
        let missing: Vec<&str> = record.missing.iter().map(String::as_str).collect();
        let revoked = compiled.revoked(subject, object, &missing);
        let withheld = revoked.or_else(|| compiled.withheld(subject, object));
        profile_rules.extend(granting.chain(withheld).map(|origin| origin.to_string()));
        if profile_rules.is_empty() {
            profile_rules.extend(compiled.shown(subject, object).map(|origin| origin.to_string()));
        }
    }
    Denial { record: record.clone(), profile_rules }
}

/// The line of the compiled policy that a rule in an explanation stands in.
fn policy_line(rule: &str) -> Option<usize> {
    let place = rule.split(|c: char| c.is_whitespace() || "()[]".contains(c));
    let mut places = place.filter_map(|word| word.strip_prefix(POLICY_NAME)?.strip_prefix(':'));
    places.find_map(|rest| rest.split(':').next()?.parse().ok())
}

/// The record that a run will leave. Opened before the run, because the sandbox's view may leave it
/// out.
pub(crate) struct Journal {
    file: File,
    /// Where the file lies, as it was found before the run.
    directory: OwnedFd,
    name: String,
    begun: Option<Begun>,
    is_kept: bool,
}

impl Journal {
    /// Makes room for one more record, and begins it by saying whose it is.
    pub(super) fn open(status: &Status) -> anyhow::Result<Self> {
        let directory = journal_directory()?;
        let make = runs::make_private(&directory);
        // Others need not know what is run, or what it was denied.
        let close = || std::fs::set_permissions(&directory, Permissions::from_mode(0o700));
        make.and_then(|()| close())
            .with_context(|| format!("cannot create `{}`", directory.display()))?;
        let runs = records()?;
        for old in runs.iter().take((runs.len() + 1).saturating_sub(MOST_RUNS)) {
            // Another run may be faster.
            let _ = std::fs::remove_file(directory.join(old));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{:020}-{}.json", now.as_nanos(), std::process::id());
        let path = directory.join(&name);
        let cannot = || format!("cannot create `{}`", path.display());
        let opened = File::open(&directory).with_context(cannot)?;
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path);
        let mut file = file.with_context(cannot)?;
        // For others, should there never be more. The record itself needs none of it.
        let begun = Begun::now(status.clone()).ok();
        if let Some(Ok(text)) = begun.as_ref().map(Begun::text) {
            let _ = file.write_all(&text);
        }
        Ok(Self { file, directory: opened.into(), name, begun, is_kept: false })
    }

    /// Writes the record; or else that there is none, and why, for which less room is enough.
    pub(super) fn keep(mut self, record: &RunRecord) -> anyhow::Result<()> {
        let written = serde_json::to_vec(record).map_err(Into::into);
        let written = written.and_then(|text| self.write(&text));
        let told = written.as_ref().err().zip(self.begun.take());
        let told = told.map(|(error, begun)| begun.unkept(format!("{error:#}")).text());
        self.is_kept = match told {
            Some(text) => text.is_ok_and(|text| self.write(&text).is_ok()),
            None => written.is_ok(),
        };
        written
    }

    /// Whether other runs of this user go on, or have been killed, so that this one may not be the
    /// last to end.
    pub(super) fn has_others(&self) -> bool {
        let is_other = |entry: rustix::io::Result<DirEntry>| {
            let Ok(entry) = entry else { return false };
            let is_own = entry.file_name().to_bytes() == self.name.as_bytes();
            !is_own && Begun::is_one(&self.directory, entry.file_name())
        };
        Dir::read_from(&self.directory).is_ok_and(|mut entries| entries.any(is_other))
    }

    fn write(&mut self, text: &[u8]) -> anyhow::Result<()> {
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(text)?;
        self.file.flush()?;
        Ok(())
    }

    /// The last finished run of that number or name, or of all.
    pub(crate) fn find(run: Option<&str>) -> anyhow::Result<RunRecord> {
        let summaries = Self::summaries()?;
        let Some(run) = run.filter(|run| *run != "last") else {
            let Some(last) = summaries.first() else { bail!(no_run(Begun::unrecorded())) };
            return last.whole();
        };
        if summaries.is_empty() && Begun::all().is_empty() {
            bail!(no_run(None));
        }
        let is_it = |it: &&Summary| it.id == run || it.name.as_deref() == Some(run);
        if let Some(found) = summaries.iter().find(is_it) {
            return found.whole();
        }
        let begun: Vec<&Summary> =
            summaries.iter().filter(|it| run.len() >= 2 && it.id.starts_with(run)).collect();
        match begun[..] {
            [one] => one.whole(),
            [] => Err(unknown(run, &summaries)),
            _ => bail!(Usage(format!(
                "`{run}` is the beginning of {} runs: {}; `dewar runs` lists them",
                begun.len(),
                begun.iter().take(5).map(|it| it.id.as_str()).collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    /// The finished runs that are kept, the last one first.
    pub(crate) fn summaries() -> anyhow::Result<Vec<Summary>> {
        let directory = journal_directory()?;
        let mut summaries = Vec::new();
        for name in records()?.into_iter().rev() {
            let path = directory.join(name);
            // Another run may throw it away meanwhile.
            let Ok(text) = std::fs::read(&path) else { continue };
            // A run that goes on, or was killed, has none: `Begun`.
            let Ok(summary) = serde_json::from_slice::<Summary>(&text) else { continue };
            summaries.push(summary.of(path));
        }
        Ok(summaries)
    }
}

impl Drop for Journal {
    /// Part of a record is none, and a run that never began needs none.
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests;
