//! What `dewar run` says at the end, on standard error.

use super::{RunRecord, RunRequest, journal::Decisions};
use crate::output::tell;
use monitor::visible;

pub(super) fn print(request: &RunRequest, record: &RunRecord) {
    if request.json {
        if let Ok(text) = serde_json::to_string(record) {
            tell!("{}", visible(&text));
        }
        return;
    }
    if request.stats {
        tell!("{}", decisions(record));
        let sum = |count: fn(&Decisions) -> u64| record.decisions.iter().map(count).sum::<u64>();
        let (server, all) = (sum(|row| row.server), sum(|row| row.queries));
        tell!("security server reached by {server} of {all} queries");
    }
    for line in lacking(record) {
        tell!("dewar: {line}");
    }
    if let Some(denial) = record.denials.first() {
        let count = record.denied();
        let times = if count == 1 { "once".into() } else { format!("{count} times") };
        let denied = &denial.record;
        tell!(
            "dewar: denied {times}; first: {} may not {} {}; `dewar explain` tells why and what would allow it",
            visible(&denied.comm),
            denied.missing.join(" "),
            visible(&denied.object),
        );
    }
}

/// What the kernel refused root, and what would help.
pub(crate) fn lacking(record: &RunRecord) -> impl Iterator<Item = String> + '_ {
    record.lacking.iter().map(|(capability, count)| {
        let times = if *count == 1 { "once".into() } else { format!("{count} times") };
        format!(
            "the kernel refused root {times} what policy grants, for want of a capability; in a profile: capabilities = [\"{capability}\"]"
        )
    })
}

/// The table "resolution of requested decisions".
pub(crate) fn decisions(record: &RunRecord) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["object manager", "queries", "by hint", "by cache", "by security server"]);
    for row in &record.decisions {
        let counts = [row.queries, row.hint, row.cache, row.server].map(|count| count.to_string());
        table.add_row(std::iter::once(row.manager.clone()).chain(counts));
    }
    for column in 1..5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    table.trim_fmt()
}
