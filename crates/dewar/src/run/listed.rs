//! A record of a run, as far as a list of runs needs it.

use super::RunRecord;
use crate::control::{Begun, Run, unwritable};
use anyhow::Context as _;
use cli::{failure::Usage, look};
use monitor::visible;
use serde::Deserialize;
use std::path::PathBuf;

/// What a list of runs says of one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Summary {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) time: f64,
    pub(crate) started: f64,
    pub(crate) command: Vec<String>,
    pub(crate) profile: String,
    pub(crate) status: i32,
    denials: Vec<Count>,
    dropped: u64,
    planted: Vec<serde::de::IgnoredAny>,
    #[serde(skip)]
    path: PathBuf,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Count {
    count: u64,
}

impl Summary {
    /// Denials, repetitions and those that were not kept counted.
    pub(crate) fn denied(&self) -> u64 {
        self.denials.iter().map(|denial| denial.count).sum::<u64>() + self.dropped
    }

    /// How much programs outside would execute because of it.
    pub(crate) fn planted(&self) -> usize {
        self.planted.len()
    }

    /// The summary of the record at `path`.
    pub(super) fn of(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    /// The whole record.
    pub(super) fn whole(&self) -> anyhow::Result<RunRecord> {
        let shown = self.path.display();
        let text = runs::read_own(&self.path).with_context(|| format!("cannot read `{shown}`"))?;
        serde_json::from_slice(&text).with_context(|| format!("`{shown}` is no record of a run"))
    }
}

/// There is nothing to look among.
pub(super) fn no_run(unrecorded: Option<Begun>) -> Usage {
    let last = unrecorded.map_or(String::new(), |last| format!("{}; ", last.told()));
    let is_inside = std::env::var_os(super::inside::VARIABLE).is_some();
    let how = match unwritable() {
        _ if is_inside => "this is inside of a run, which sees no records: ask outside".into(),
        Some(why) => why,
        None => "start one with `dewar run -- COMMAND`".into(),
    };
    Usage(format!("{last}no run has been recorded yet; {how}"))
}

/// Nothing is called so: what may have been meant, and where to look.
pub(super) fn unknown(run: &str, summaries: &[Summary]) -> anyhow::Error {
    let (going_on, unheard) = Run::and_unheard().unwrap_or_default();
    let is_it = |it: &&Run| it.status.id == run || it.status.name.as_deref() == Some(run);
    if let Some(it) = going_on.iter().find(is_it) {
        let what =
            format!("run {} goes on, and its record is there once it has ended", it.status.id);
        let called = it.status.name.as_ref().unwrap_or(&it.status.id);
        let so_far = format!("`dewar explain {}` tells what it was denied so far", visible(called));
        return Usage(format!("{what}; {so_far}")).into();
    }
    if let Some(it) = unheard.iter().find(|it| it.is_called(run)) {
        let how = if it.is_stopped { "is stopped" } else { "does not answer" };
        let what = format!("run {} {how}, and its record is there once it has ended", it.id);
        return Usage(format!("{what}; {}", it.remedy())).into();
    }
    let is_it = |it: &&Begun| it.status.id == run || it.status.name.as_deref() == Some(run);
    if let Some(it) = Begun::all().iter().filter(|it| it.is_over()).find(is_it) {
        return Usage(it.told()).into();
    }
    let names = summaries.iter().flat_map(|it| [Some(it.id.as_str()), it.name.as_deref()]);
    let meant = look::did_you_mean(run, names.flatten());
    let run = visible(run);
    let number =
        run.parse::<u32>().map(|_| format!(" (`dewar allow {run}` takes numbers of denials)"));
    let meant = number.unwrap_or(meant);
    Usage(format!(
        "no finished run is called `{run}`{meant}; `dewar runs` lists those that are kept"
    ))
    .into()
}
