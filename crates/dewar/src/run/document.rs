//! What commands print as JSON: one style for all of them.
//!
//! Times are RFC 3339, numbers have their units in their names, and each document that is an object
//! names itself and its version. [`crate::schema`] has the schemas.

use crate::run::{Decisions, RunRecord};
use monitor::{Deed, DeedKind};
use serde::Serialize;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The version of [`RunDocument`].
pub(crate) const RUN: &str = "dewar/run/1";

/// A time in seconds since 1970, as RFC 3339 with milliseconds; `None` for 0, which nobody knows.
pub(crate) fn time(seconds: f64) -> Option<String> {
    let since = Duration::try_from_secs_f64(seconds).ok().filter(|since| !since.is_zero())?;
    let time = UNIX_EPOCH.checked_add(since)?;
    Some(humantime::format_rfc3339_millis(time).to_string())
}

/// A moment as RFC 3339 with milliseconds.
pub(crate) fn moment(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// A finished run: what `dewar explain --json`, `dewar report --json` and `dewar run --json` print.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RunDocument {
    /// Which document this is, and in which version.
    pub(crate) schema: &'static str,
    /// The run, as `dewar ps` called it.
    pub(crate) id: String,
    /// What `dewar run --name` called it.
    pub(crate) name: Option<String>,
    /// The command and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) profile: String,
    /// Where it was started.
    pub(crate) directory: String,
    /// `all` or `fast`.
    pub(crate) mode: String,
    pub(crate) started_at: Option<String>,
    pub(crate) ended_at: Option<String>,
    pub(crate) duration_seconds: Option<f64>,
    /// The exit status that a shell would show; 0 while it goes on.
    pub(crate) status: i32,
    /// It has not ended: this is what is on record of it so far.
    pub(crate) goes_on: bool,
    /// Decisions by object manager, and where they were found.
    pub(crate) decisions: Vec<DecisionsDocument>,
    /// What calls took the monitor, the dearest first; empty unless `--stats` or `--json` asked.
    pub(crate) spent: Vec<SpentDocument>,
    /// What was denied, each kind once, the most frequent first.
    pub(crate) denials: Vec<DenialDocument>,
    /// Denials that were not kept.
    pub(crate) dropped: u64,
    /// What the kernel refused root although policy grants it, by the capability that would have
    /// helped.
    pub(crate) lacking: Vec<(String, u64)>,
    /// What was denied to nobody, and may be why the command failed all the same.
    pub(crate) remarks: Vec<String>,
    /// Layers that refused without a record, if they refused anything.
    pub(crate) unrecorded: Vec<String>,
    /// Changes of its policy while it ran.
    pub(crate) changes: Vec<ChangeDocument>,
    /// What was asked before it was denied, and answered.
    pub(crate) answers: Vec<AnswerDocument>,
    /// What was written, removed, executed and contacted.
    pub(crate) deeds: Vec<DeedDocument>,
    /// How much more of each kind was not kept.
    pub(crate) deeds_more: Vec<(String, u64)>,
    /// Whether what follows was looked for.
    pub(crate) guarded: bool,
    /// What programs outside would execute because of it.
    pub(crate) planted: Vec<PlantedDocument>,
    /// How much more of that there was.
    pub(crate) planted_more: u64,
    /// How many runs began inside of it.
    pub(crate) runs_inside: u32,
    /// The lines of a profile that would allow what was denied, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) would_allow: Option<Vec<String>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DecisionsDocument {
    pub(crate) manager: String,
    pub(crate) queries: u64,
    pub(crate) hint: u64,
    pub(crate) cache: u64,
    pub(crate) server: u64,
}

/// What a system call took the monitor.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SpentDocument {
    pub(crate) manager: String,
    pub(crate) call: String,
    pub(crate) times: u64,
    pub(crate) seconds: f64,
}

/// An answer to a question of `dewar run --ask`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AnswerDocument {
    pub(crate) at: String,
    /// Who wanted what.
    pub(crate) what: String,
    /// `once`, `run`, `profile`, `no`, or why there was none.
    pub(crate) answer: String,
    pub(crate) by: String,
}

/// A denial.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DenialDocument {
    /// What `dewar allow` takes.
    pub(crate) number: usize,
    /// When last.
    pub(crate) time: Option<String>,
    pub(crate) count: u64,
    pub(crate) pid: u32,
    /// Name of the thread.
    pub(crate) comm: String,
    pub(crate) program: String,
    /// The system call.
    pub(crate) call: String,
    pub(crate) object: String,
    pub(crate) scontext: String,
    pub(crate) tcontext: String,
    pub(crate) tclass: String,
    pub(crate) requested: Vec<String>,
    /// What of it policy does not grant.
    pub(crate) missing: Vec<String>,
    /// The rules of the policy that bear on it.
    pub(crate) rules: Vec<String>,
    pub(crate) reason: String,
    /// Which part of Dewar refuses it whatever policy says; empty where policy decided.
    pub(crate) refused_by: String,
    /// What leads to the same end, where policy has no say.
    pub(crate) instead: String,
    /// The rule that would allow it.
    pub(crate) would_allow: Option<String>,
    /// What whoever connects to it gets outside of the sandbox, where it is a service that acts for
    /// everybody.
    pub(crate) gives_outside: Option<&'static str>,
    /// The lines of the profile that bear on it.
    pub(crate) profile_rules: Vec<String>,
}

/// A change of policy.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ChangeDocument {
    pub(crate) at: String,
    /// As a command.
    pub(crate) what: String,
    /// `complete`, `incomplete`, or why nothing was changed.
    pub(crate) outcome: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DeedDocument {
    /// `wrote`, `removed`, `executed`, `contacted` or `bound`.
    pub(crate) kind: String,
    pub(crate) object: String,
    /// Who did it first: the name of the thread.
    pub(crate) comm: String,
    pub(crate) count: u64,
    pub(crate) first_at: Option<String>,
    pub(crate) last_at: Option<String>,
}

/// Something that a program outside would execute, or do the bidding of.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlantedDocument {
    pub(crate) path: String,
    /// `new`, `changed` or `refused`.
    pub(crate) state: String,
    /// `name`, `repository`, `path`, `link`, `unseen` or `setid`.
    pub(crate) kind: String,
    /// Who would execute it.
    pub(crate) runs: String,
    /// Only when somebody builds, tests or starts the project.
    pub(crate) when_built: bool,
}

/// A kind of deed, as documents spell it.
pub(crate) fn kind_name(kind: DeedKind) -> &'static str {
    match kind {
        DeedKind::Wrote => "wrote",
        DeedKind::Removed => "removed",
        DeedKind::Executed => "executed",
        DeedKind::Contacted => "contacted",
        DeedKind::Bound => "bound",
    }
}

impl RunDocument {
    /// Of what was kept of a run.
    pub(crate) fn of(record: &RunRecord) -> Self {
        let known = record.started > 0.0 && record.time >= record.started;
        let denials = record.denials.iter().enumerate();
        Self {
            schema: RUN,
            id: record.id.clone(),
            name: record.name.clone(),
            command: record.command.clone(),
            profile: record.profile.clone(),
            directory: record.directory.display().to_string(),
            mode: record.mode.clone(),
            started_at: time(record.started),
            ended_at: time(record.time),
            duration_seconds: known.then_some((record.time - record.started) as f32).map(f64::from),
            status: record.status,
            goes_on: record.goes_on,
            decisions: record.decisions.iter().map(decisions).collect(),
            spent: record.spent.iter().map(spent).collect(),
            denials: denials.map(|(index, denial)| self::denial(index + 1, denial)).collect(),
            dropped: record.dropped,
            lacking: record.lacking.clone(),
            remarks: record.remarks.clone(),
            unrecorded: record.unrecorded.clone(),
            changes: record.changes.iter().map(change).collect(),
            answers: record.answers.iter().map(answer).collect(),
            deeds: record.deeds.iter().map(deed).collect(),
            deeds_more: record
                .deeds_more
                .iter()
                .map(|(kind, count)| (kind_name(*kind).to_owned(), *count))
                .collect(),
            guarded: record.guarded,
            planted: record.planted.iter().map(planted).collect(),
            planted_more: record.planted_more,
            runs_inside: record.runs_inside,
            would_allow: None,
        }
    }
}

fn decisions(of: &Decisions) -> DecisionsDocument {
    let manager = of.manager.clone();
    let Decisions { queries, hint, cache, server, .. } = *of;
    DecisionsDocument { manager, queries, hint, cache, server }
}

fn spent(of: &crate::run::Spent) -> SpentDocument {
    let crate::run::Spent { manager, call, times, seconds } = of.clone();
    SpentDocument { manager, call, times, seconds }
}

fn answer(of: &crate::run::Answered) -> AnswerDocument {
    let crate::run::Answered { when, what, answer, by } = of.clone();
    AnswerDocument { at: moment(when), what, answer, by }
}

fn denial(number: usize, denial: &crate::run::Denial) -> DenialDocument {
    let record = denial.record.clone();
    DenialDocument {
        gives_outside: profile::power(&record.object),
        number,
        time: time(record.time),
        count: record.count,
        pid: record.pid,
        comm: record.comm,
        program: record.program,
        call: record.call,
        object: record.object,
        scontext: record.scontext,
        tcontext: record.tcontext,
        tclass: record.tclass,
        requested: record.requested,
        missing: record.missing,
        rules: record.rules,
        reason: record.reason,
        refused_by: record.refused_by,
        instead: record.instead,
        would_allow: record.would_allow,
        profile_rules: denial.profile_rules.clone(),
    }
}

fn change(change: &crate::control::PolicyChange) -> ChangeDocument {
    use crate::control::ChangeResult;
    let outcome = match &change.outcome {
        ChangeResult::Receipt(receipt) if receipt.complete => "complete".to_owned(),
        ChangeResult::Receipt(_) => "incomplete".to_owned(),
        ChangeResult::Failed(why) => format!("nothing was changed: {why}"),
    };
    ChangeDocument { at: moment(change.when), what: change.what.clone(), outcome }
}

fn deed(deed: &Deed) -> DeedDocument {
    DeedDocument {
        kind: kind_name(deed.kind).to_owned(),
        object: deed.object.clone(),
        comm: deed.comm.clone(),
        count: deed.count,
        first_at: time(deed.first),
        last_at: time(deed.last),
    }
}

fn planted(of: &crate::run::PlantedRecord) -> PlantedDocument {
    let crate::run::PlantedRecord { path, state, kind, runs, when_built } = of.clone();
    PlantedDocument { path, state, kind, runs, when_built }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        assert_eq!(time(86_400.25).as_deref(), Some("1970-01-02T00:00:00.250Z"));
        assert_eq!((time(0.0), time(f64::NAN), time(-1.0)), (None, None, None));
    }
}
