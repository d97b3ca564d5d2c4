//! A run that somebody wants to change or to ask, and that has ended.

use super::{journal_directory, records};
use crate::failure::Usage;
use monitor::visible;
use serde::Deserialize;
use std::io::BufReader;

/// What tells whose record a file is.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Ended {
    id: String,
    name: Option<String>,
}

/// That the run of this id or name has ended; `None` if there is no record of one.
pub(super) fn ended(run: &str) -> Option<Usage> {
    let directory = journal_directory().ok()?;
    let read = |name| {
        let file = runs::own_file(&directory.join(name)).ok()?;
        serde_json::from_reader(BufReader::new(file)).ok()
    };
    let mut ended = records().ok()?.into_iter().rev().filter_map(read);
    ended.find(|it: &Ended| it.id == run || it.name.as_deref() == Some(run))?;
    let run = visible(run);
    Some(Usage(format!(
        "run {run} has ended; `dewar explain {run}` tells what it was denied, and what was changed"
    )))
}
