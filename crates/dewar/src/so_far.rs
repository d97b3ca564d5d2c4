//! A run that goes on, as its record would be if it ended now.

use crate::{
    control::{Begun, Reply, Request, Run, Status, odd},
    run::{Denial, RunRecord},
};
use anyhow::bail;
use monitor::visible;
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

/// What is on record of `run` so far. A denial keeps its number, also when the run has ended.
///
/// # Errors
///
/// As for [`Run::ask`].
pub(crate) fn so_far(run: &mut Run) -> anyhow::Result<RunRecord> {
    let Reply::Denials(denials) = run.ask(Request::Denials)? else { bail!(odd()) };
    let Reply::History(changes) = run.ask(Request::History)? else { bail!(odd()) };
    let Reply::Counters(counters) = run.ask(Request::Counters)? else { bail!(odd()) };
    let processes = match run.ask(Request::Processes)? {
        Reply::Processes(processes) => processes,
        // Nobody is left to look by.
        _ => Vec::new(),
    };
    let status = run.status.clone();
    let pids = [status.pid].into_iter().chain(processes.iter().map(|process| process.pid));
    let out_of_view = out_of_view(&status, pids, &denials);
    Ok(RunRecord {
        id: status.id,
        name: status.name,
        started: status.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
        goes_on: true,
        command: status.command,
        profile: status.profile,
        argument: status.argument,
        directory: status.directory,
        variables: Some(status.variables),
        decisions: counters.decisions,
        remarks: counters.remarks,
        out_of_view,
        denials,
        changes,
        ..RunRecord::default()
    })
}

/// Files that were denied and are there, but not in the view of the run. Nothing is said where the
/// view cannot be looked into: the kernel lets an ordinary user look by the processes of the
/// program only, not by the monitor.
fn out_of_view(
    status: &Status,
    mut pids: impl Iterator<Item = u32>,
    denials: &[Denial],
) -> Vec<String> {
    let below = |pid: u32, path: &Path| {
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        path.strip_prefix("/").map(|path| root.join(path))
    };
    let shows = |pid: &u32| below(*pid, &status.variables.workspace).is_ok_and(|it| it.is_dir());
    let Some(pid) = pids.find(shows) else { return Vec::new() };
    let inside = |path: &Path| below(pid, path);
    let is_out = |object: &&String| {
        let path = Path::new(object.as_str());
        let found = inside(path).map(|it| it.symlink_metadata());
        let is_absent = found.is_ok_and(|it| it.is_err_and(|it| it.kind() == ErrorKind::NotFound));
        is_absent && path.symlink_metadata().is_ok()
    };
    denials.iter().map(|denial| &denial.record.object).filter(is_out).cloned().collect()
}

/// That a run without a record was started after the one of `record`, which is the last of those
/// that have one.
pub(crate) fn newer(record: &RunRecord) -> Option<String> {
    let ended = Duration::try_from_secs_f64(record.started).ok().map(|since| UNIX_EPOCH + since)?;
    let is_newer = |it: &Begun| !it.is_over() && it.status.started > ended;
    let status = Begun::all().into_iter().find(is_newer)?.status;
    let called = status.name.as_ref().unwrap_or(&status.id);
    Some(format!(
        "run {}, `{}`, goes on: `dewar explain {}` tells what it was denied so far. This is the last run that has ended:",
        status.id,
        visible(&status.command.join(" ")),
        visible(called)
    ))
}
