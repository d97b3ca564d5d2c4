//! `dewar runs`: the finished runs that are kept.

use crate::{
    output,
    run::document,
    run::{Journal, Summary},
};
use clap::Args;
use cli::look::{self, BAD, FAINT, GOOD, NAME, STRONG, paint};
use monitor::visible;
use serde::Serialize;
use std::{fmt::Write as _, time::Duration};

const EXAMPLES: &str = "\
Examples:
  dewar runs                                the last runs, the newest first
  dewar runs --all --json | jq -r '.[] | select(.denied > 0) | .id'
  dewar explain 4k7m; dewar report ci       a run by the beginning of its id, or by its name

Exit status: 0, also when no run is kept; 2 for wrong use.";

/// Rows without `--all`.
const MOST: usize = 20;

/// List the runs that ended: their ids and names, which other commands take.
///
/// Records of the last 200 runs are kept, in the state directory of the user. Those that go on are
/// listed by `dewar ps`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunsArgs {
    /// All that are kept, not only the last 20
    #[arg(long)]
    all: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A finished run: what `dewar runs --json` prints of it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Row {
    /// What other commands take.
    id: String,
    /// What `dewar run --name` called it.
    name: Option<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
    duration_seconds: Option<f64>,
    profile: String,
    command: Vec<String>,
    /// The exit status that a shell would show.
    status: i32,
    /// How often something was denied.
    denied: u64,
    /// How much programs outside would execute because of it.
    planted: usize,
}

/// Carries out `dewar runs`.
pub(crate) fn run(args: &RunsArgs) -> anyhow::Result<()> {
    let summaries = Journal::summaries()?;
    let most = if args.all { usize::MAX } else { MOST };
    if args.json {
        let rows: Vec<Row> = summaries.iter().take(most).map(row).collect();
        return Ok(output::print(output::json(&rows)?.as_bytes())?);
    }
    Ok(look::show(&tell(&summaries, most, look::columns().unwrap_or(usize::MAX))?)?)
}

fn row(of: &Summary) -> Row {
    Row {
        id: of.id.clone(),
        name: of.name.clone(),
        started_at: document::time(of.started),
        ended_at: document::time(of.time),
        duration_seconds: (of.started > 0.0)
            .then_some((of.time - of.started) as f32)
            .map(f64::from),
        profile: of.profile.clone(),
        command: of.command.clone(),
        status: of.status,
        denied: of.denied(),
        planted: of.planted(),
    }
}

pub(crate) fn tell(
    summaries: &[Summary],
    most: usize,
    width: usize,
) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    if summaries.is_empty() {
        writeln!(text, "no run is kept; `dewar run -- COMMAND` makes one")?;
        return Ok(text);
    }
    let shown = &summaries[..summaries.len().min(most)];
    let names = shown.iter().filter_map(|it| it.name.as_ref()).map(String::len).max();
    // On a narrow terminal a name leaves room for the command.
    let most = if width < 100 { 10 } else { 20 };
    let name_width = names.map_or(0, |longest| longest.clamp(4, most) + 2);
    // The command comes first.
    let profile_width = if width < 100 { 0 } else { 14 };
    let head = format!(
        "{:14}{:name_width$}{:18}{:>8}{:>6}{:>8}  {:profile_width$}COMMAND",
        "RUN",
        if name_width > 0 { "NAME" } else { "" },
        "ENDED",
        "TOOK",
        "EXIT",
        "DENIED",
        if profile_width > 0 { "PROFILE" } else { "" },
    );
    writeln!(text, "{}", paint(STRONG, &head))?;
    for it in shown {
        let ended = document::time(it.time).unwrap_or_default();
        let ended = ended.get(..16).unwrap_or_default().replace('T', " ");
        let took = if it.started > 0.0 { took(it.time - it.started) } else { String::new() };
        let status = if it.status == 0 { GOOD } else { BAD };
        let denied = if it.denied() == 0 { FAINT } else { look::WARN };
        let name = look::cut(
            &visible(it.name.as_deref().unwrap_or_default()),
            name_width.saturating_sub(2),
        );
        let profile = match profile_width {
            0 => String::new(),
            width => {
                let shipped = it.profile.strip_prefix("profile ").unwrap_or(&it.profile);
                look::cut(&visible(shipped), width - 2)
            }
        };
        let used = 14 + name_width + 18 + 8 + 6 + 8 + 2 + profile_width;
        let command = visible(&it.command.join(" "));
        let command = look::cut(&command, width.saturating_sub(used).max(12));
        writeln!(
            text,
            "{NAME}{:14}{NAME:#}{name:name_width$}{ended:18}{took:>8}{status}{:>6}{status:#}{denied}{:>8}{denied:#}  {profile:profile_width$}{command}",
            visible(&it.id),
            it.status,
            it.denied(),
        )?;
    }
    if let more @ 1.. = summaries.len() - shown.len() {
        writeln!(text, "{FAINT}and {more} more; --all lists them{FAINT:#}")?;
    }
    Ok(text)
}

/// How long something took, to what matters.
pub(crate) fn took(seconds: f64) -> String {
    match seconds {
        s if s < 0.0995 => format!("{:.0} ms", s * 1e3),
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{} min", Duration::from_secs_f64(s).as_secs() / 60),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_the_unit_that_fits() {
        for (seconds, want) in [
            (0.004, "4 ms"),
            (1.26, "1.3 s"),
            (59.0, "59.0 s"),
            (150.0, "2 min"),
            (5400.0, "1.5 h"),
        ] {
            assert_eq!(took(seconds), want);
        }
    }

    #[test]
    fn the_screen_is_as_it_was_reviewed() {
        let summary = |name: Option<&str>, status: i32, command: &str, denied: u64| {
            let document = serde_json::json!({
                "id": "4k7m2p9x", "name": name, "started": 1_790_000_000.0,
                "time": 1_790_000_061.5, "command": command.split(' ').collect::<Vec<_>>(), "profile": "workspace+loopback",
                "status": status, "denials": [{ "count": denied }],
            });
            serde_json::from_value::<Summary>(document).unwrap()
        };
        let long = "make -C a/directory/with/a/long/name all check install VERBOSE=1 PREFIX=/usr";
        let summaries = [
            summary(None, 0, "true", 0),
            summary(Some("nightly"), 2, long, 7),
            summary(Some("a-name-that-is-longer-than-names-are"), 137, "sh", 30_001),
        ];
        crate::screens::screen("runs", |width| tell(&summaries, 2, width).unwrap());
    }
}
