//! A run that has ended: what is kept of it, and what is said.

use super::{
    Journal, RunRecord, RunRequest, Spent,
    counts::decisions,
    link::Answered,
    owner::Owner,
    planted,
    prepare::Profile,
    record::denial,
    summary,
    unseen::{self, Named},
};
use crate::output::tell;
use confine::{Mode, launch::CommandStatus};
use monitor::Report;
use std::time::{SystemTime, UNIX_EPOCH};

/// A run that has ended.
pub(super) struct Ended<'a> {
    pub(super) request: &'a RunRequest,
    pub(super) profile: &'a Profile,
    pub(super) id: String,
    pub(super) mode: Mode,
    pub(super) report: &'a Report,
    pub(super) owner: &'a Owner,
    /// What the command names, as it was found before.
    pub(super) named: Named,
    pub(super) answers: Vec<Answered>,
    /// That a daemon did not answer.
    pub(super) unanswered: Option<String>,
}

impl Ended<'_> {
    /// What is kept of it.
    pub(super) fn record(self) -> RunRecord {
        let Self { request, profile, report, .. } = self;
        let history = self.owner.history();
        let seconds =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let words = request.command.iter().map(|word| word.to_string_lossy().into_owned());
        let denials: Vec<_> = report.denials.iter().map(|it| denial(&history, it)).collect();
        let lacking = report.lacking.iter().map(|(name, count)| ((*name).to_owned(), *count));
        let (compiled, learning) = (&*profile.compiled, request.learning.as_ref());
        let mut record = RunRecord {
            id: self.id,
            name: request.name.clone(),
            time: seconds(SystemTime::now()),
            started: seconds(self.owner.started()),
            mode: if self.mode == Mode::Fast { "fast" } else { "all" }.to_owned(),
            command: words.collect(),
            profile: compiled.name.clone(),
            // The profile that it was learned under is gone by then.
            argument: learning.map_or(&profile.argument, |it| &it.base).clone(),
            learned: learning.map(|it| it.file.clone()),
            directory: std::env::current_dir().unwrap_or_default(),
            variables: Some(profile.variables.clone()),
            status: report.outcome.status(),
            decisions: report.decisions.iter().map(|(name, it)| decisions(name, *it)).collect(),
            spent: report.spent.iter().map(Spent::of).collect(),
            planted: planted::records(&report.planted, &denials),
            denials,
            dropped: report.dropped,
            lacking: lacking.collect(),
            remarks: report.remarks.iter().chain(&report.bounded).cloned().collect(),
            time_limit: time_limit(report.outcome, compiled),
            unseen: self.named.unseen(),
            path_unseen: self.named.path_unseen(),
            another: self.named.another().map(unseen::another),
            unfound: unseen::unfound(compiled),
            above: profile.above.clone(),
            kept_out: unseen::variables_kept_out(&compiled.environment),
            unrecorded: report.unrecorded.iter().map(|&layer| layer.to_owned()).collect(),
            changes: history.changes.clone(),
            answers: self.answers,
            guarded: compiled.guarded,
            planted_more: report.planted_more,
            runs_inside: report.runs_inside,
            deeds: report.deeds.clone(),
            deeds_more: report.deeds_more.clone(),
            ..RunRecord::default()
        };
        record.remarks.extend(self.unanswered);
        let granted = (compiled, &profile.documents);
        record.remarks.extend(unseen::remarks(&record, granted, &profile.variables));
        record
    }
}

/// Keeps the record of a run, and says what there is to say of it.
pub(super) fn keep_and_tell(
    request: &RunRequest,
    (record, report): (&RunRecord, &Report),
    journal: anyhow::Result<Journal>,
) {
    let has_others = journal.as_ref().is_ok_and(Journal::has_others);
    let kept = journal.and_then(|journal| journal.keep(record));
    if let Some(line) = &record.time_limit {
        tell!("dewar: {line}");
    }
    if let CommandStatus::NotExecuted(errno) = report.outcome {
        let command = &request.command[0];
        let unseen = record.unseen.iter().find_map(|it| it.program(command));
        summary::tell_not_executed(command, errno, unseen);
    }
    let recorded = match &kept {
        Err(_) => summary::Recorded::Not,
        Ok(()) if has_others => summary::Recorded::BesideOthers,
        Ok(()) => summary::Recorded::Last,
    };
    summary::print(request, record, (recorded, report.bounded.as_ref()));
    if let Some(error) = &report.audit_failure {
        tell!(
            "dewar: decisions are missing from the audit trail, which could not be written: {error}"
        );
    }
    if let Err(error) = kept {
        // A full disk, or a home that is read-only. How the command ended is worth more.
        tell!(
            "dewar: cannot keep the record of this run, so `dewar explain` will not know it: {error:#}"
        );
    }
}

/// That the command was ended at its time limit, if it was.
fn time_limit(outcome: CommandStatus, compiled: &profile::Compiled) -> Option<String> {
    let limit = compiled.limits.time.filter(|_| outcome == CommandStatus::TimedOut)?;
    Some(format!(
        "the command was ended at its time limit of {} (`limits.time` of {})",
        humantime::format_duration(limit),
        compiled.name
    ))
}
