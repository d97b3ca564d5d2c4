//! `dewar run`: a command under a profile.

mod above;
mod args;
mod asking;
mod cargo;
mod counts;
pub(crate) mod document;
mod dry;
mod hosts;
mod inside;
mod journal;
mod kept;
pub(crate) mod link;
mod misspelt;
mod owner;
mod place;
mod planted;
mod prepare;
mod proposing;
mod record;
mod request;
mod scratch;
mod script;
mod serving;
mod spelling;
mod summary;
mod trusted;
mod unchecked;
mod unseen;
mod weight;

use crate::{
    control::{Endpoint, Run},
    failure::Usage,
    output::tell,
};
use anyhow::{Context as _, bail};
use confine::Mode;
use confine::launch::{CommandStatus, Inherited};
use confine::layers::Probe;
use monitor::Enforce;
use serving::Serving;
use std::{sync::Arc, time::UNIX_EPOCH};

use owner::{Facts, Owner};

pub(crate) use crate::control::{Decisions, Denial};
pub(crate) use args::RunArgs;
pub(crate) use counts::Spent;
pub(crate) use inside::is_inside;
pub(crate) use journal::Journal;
pub(crate) use kept::Summary;
pub(crate) use link::Answered;
pub(crate) use planted::{PlantedRecord, tell as tell_planted};
pub(crate) use prepare::REQUIRED;
pub(crate) use record::RunRecord;
pub(crate) use request::{AskRequest, RunRequest, UseDaemon};
pub(crate) use script::found as found_program;
pub(crate) use summary::lacking;
pub(crate) use trusted::{executed_for, guarded_for, is_trusted_outside};
pub(crate) use unseen::{Unseen, WHILE_IT_RAN, kept_out, path_unseen};

/// Runs the command; how it ended.
pub(crate) fn run(request: &RunRequest, mut inherited: Inherited) -> anyhow::Result<CommandStatus> {
    if is_inside() {
        inherited.refuse_descriptors();
    }
    if let Some(outcome) = inside::run(request, &inherited)? {
        return Ok(outcome);
    }
    // A child process tries the layers of protection while this one compiles.
    let probe = Probe::start();
    let profile = prepare::profile(request, &probe)?;
    insist_on_name(request)?;
    if request.dry_run {
        dry::run(request, &profile, probe)?;
        return Ok(CommandStatus::Exited(0));
    }
    let endpoint = Endpoint::bind();
    let id = match &endpoint {
        Ok(endpoint) => endpoint.id().to_owned(),
        Err(_) => runs::new_id().context("no random numbers")?,
    };
    let (serving, trail) = Serving::begin(request, &profile, &id)?;
    let protection = prepare::protection(request, &profile, probe)?;
    let command: Vec<String> =
        request.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let status = owner::status(&id, request.name.clone(), command, &profile);
    let journal = Journal::open(&status);
    // Not before a daemon has got the policy as a descriptor: it may serve at one of these sockets.
    inherited.refuse_descriptors();
    for confine::launch::Withheld { fd, why } in inherited.withheld() {
        tell!("dewar: descriptor {fd} is not handed on: {why}");
    }
    let directory = std::env::current_dir().unwrap_or_default();
    let path = std::env::var_os("PATH");
    let places = (directory.as_path(), path.as_deref());
    let named = unseen::Named::of(&request.command, places, &profile.variables);
    let prompter = match request.ask.is_some() || profile.proposing.socket.is_some() {
        true => Some(asking::Prompter::start(request, &profile, &inherited, &id)?),
        false => None,
    };
    let notes = prompter.as_ref().map(asking::Prompter::notes).unwrap_or_default();
    let mut job = prepare::job(request, &profile, &protection, inherited)?;
    job.audit.extend(trail);
    job.request.environment.push(inside::variable(&id, request, &profile));
    let facts = Facts { status, undecided: job.enforce != Enforce::ALL };
    let owner = Arc::new(Owner::new(serving.decider(), facts, &profile));
    let (begin, follow) = (Arc::clone(&owner), serving.follower());
    let serve = endpoint.as_ref().map(|endpoint| endpoint.starter(Arc::clone(&owner)));
    let serve = match serve {
        Ok(serve) => Some(serve),
        Err(error) => {
            tell!("dewar: this run cannot be asked or changed: {error:#}");
            None
        }
    };
    job.ask =
        prompter.as_ref().filter(|_| request.ask.is_some()).map(|prompter| prompter.asking(&owner));
    let (asked, decides) = (Arc::clone(&owner), job.enforce == Enforce::ALL);
    let tells = !request.quiet && !request.json;
    job.started = Some(Box::new(move |control| {
        if let Some(line) = control.bounded().filter(|_| tells) {
            tell!("dewar: {line}");
        }
        begin.begin(control.clone());
        if decides {
            control.serve_inside(Box::new(inside::compile));
        }
        if let Some(prompter) = prompter {
            prompter.serve(control.clone(), asked);
        }
        follow(control.clone());
        if let Some(serve) = serve {
            serve(control);
        }
    }));
    let mode = if job.request.mode == Mode::Fast { "fast" } else { "all" };
    let report = monitor::run(job, Arc::clone(&serving.server))
        .map_err(|error| place::told(error, &profile.compiled))?;
    // Waits for changes under way, which belong to the record.
    drop(endpoint);
    serving.end();
    let names = (id.as_str(), profile.compiled.name.as_str());
    let record = RunRecord::new(request, names, &report, &owner.history());
    // The profile that it was learned under is gone by then.
    let argument = match &request.learning {
        Some(learning) => learning.base.clone(),
        None => profile.argument.clone(),
    };
    let learned = request.learning.as_ref().map(|learning| learning.file.clone());
    let record = RunRecord { argument, learned, ..record };
    let planted = planted::records(&report.planted, &record.denials);
    let guarded = profile.compiled.guarded;
    let variables = Some(profile.variables.clone());
    let started = owner.started().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let (mode, answers) = (mode.to_owned(), notes.all());
    let unfound = unseen::unfound(&profile.compiled);
    let kept_out = unseen::variables_kept_out(&profile.compiled.environment);
    let (unseen, path_unseen) = (named.unseen(), named.path_unseen());
    let another = named.another().map(unseen::another);
    let mut record = RunRecord {
        planted,
        guarded,
        variables,
        answers,
        started,
        mode,
        unfound,
        kept_out,
        unseen,
        path_unseen,
        another,
        above: profile.above.clone(),
        time_limit: time_limit(report.outcome, &profile.compiled),
        ..record
    };
    record.remarks.extend(serving.unanswered());
    let granted = (&*profile.compiled, &profile.documents);
    record.remarks.extend(unseen::remarks(&record, granted, &profile.variables));
    let has_others = journal.as_ref().is_ok_and(Journal::has_others);
    let kept = journal.and_then(|journal| journal.keep(&record));
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
    summary::print(request, &record, (recorded, report.bounded.as_ref()));
    if let Some(error) = report.audit_failure {
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
    Ok(report.outcome)
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

/// A name stands for one run at a time.
fn insist_on_name(request: &RunRequest) -> anyhow::Result<()> {
    let Some(name) = &request.name else { return Ok(()) };
    let (runs, unheard) = Run::and_unheard()?;
    let going_on = runs.iter().find(|run| run.status.name.as_ref() == Some(name));
    let unheard = unheard.iter().find(|it| it.is_called(name)).map(|it| &it.id);
    if let Some(id) = going_on.map(|run| &run.status.id).or(unheard) {
        bail!(Usage(format!("run {id} is called `{name}` already")));
    }
    Ok(())
}
