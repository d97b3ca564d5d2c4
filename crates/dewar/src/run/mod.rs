//! `dewar run`: a command under a profile.

mod above;
mod args;
mod asking;
mod cargo;
mod counts;
pub(crate) mod document;
mod dry;
mod ended;
mod hosts;
mod inside;
mod journal;
pub(crate) mod link;
mod listed;
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
use confine::launch::{CommandStatus, Inherited};
use confine::layers::Probe;
use ended::Ended;
use monitor::Enforce;
use owner::{Facts, Owner};
use prepare::Profile;
use serving::{Serving, Started};
use std::sync::Arc;

pub(crate) use crate::control::{Decisions, Denial};
pub(crate) use args::RunArgs;
pub(crate) use counts::Spent;
pub(crate) use inside::is_inside;
pub(crate) use journal::Journal;
pub(crate) use link::Answered;
pub(crate) use listed::Summary;
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
    watch(request, (&profile, probe), inherited)
}

/// Runs the command under a profile, to its end.
fn watch(
    request: &RunRequest,
    (profile, probe): (&Profile, Probe),
    mut inherited: Inherited,
) -> anyhow::Result<CommandStatus> {
    let endpoint = Endpoint::bind();
    let id = match &endpoint {
        Ok(endpoint) => endpoint.id().to_owned(),
        Err(_) => runs::new_id().context("no random numbers")?,
    };
    let (serving, trail) = Serving::begin(request, profile, &id)?;
    let protection = prepare::protection(request, profile, probe)?;
    let command: Vec<String> =
        request.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let status = owner::status(&id, request.name.clone(), command, profile);
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
        true => Some(asking::Prompter::start(request, profile, &inherited, &id)?),
        false => None,
    };
    let notes = prompter.as_ref().map(asking::Prompter::notes).unwrap_or_default();
    let mut job = prepare::job(request, profile, &protection, inherited)?;
    job.audit.extend(trail);
    job.request.environment.push(inside::variable(&id, request, profile));
    let facts = Facts { status, undecided: job.enforce != Enforce::ALL };
    let owner = Arc::new(Owner::new(serving.decider(), facts, profile));
    job.ask =
        prompter.as_ref().filter(|_| request.ask.is_some()).map(|prompter| prompter.asking(&owner));
    job.started = Some(started(request, &owner, (&serving, &endpoint), prompter));
    let mode = job.request.mode;
    let report = monitor::run(job, Arc::clone(&serving.server))
        .map_err(|error| place::told(error, &profile.compiled))?;
    // Waits for changes under way, which belong to the record.
    drop(endpoint);
    serving.end();
    let (answers, unanswered) = (notes.all(), serving.unanswered());
    let (report, owner) = (&report, &*owner);
    let ended = Ended { request, profile, id, mode, report, owner, named, answers, unanswered };
    ended::keep_and_tell(request, (&ended.record(), report), journal);
    Ok(report.outcome)
}

/// What begins once the command can run: changes, questions, runs inside.
fn started(
    request: &RunRequest,
    owner: &Arc<Owner>,
    (serving, endpoint): (&Serving, &anyhow::Result<Endpoint>),
    prompter: Option<asking::Prompter>,
) -> Started {
    let (decides, tells) = (request.enforce == Enforce::ALL, !request.quiet && !request.json);
    let (owner, noting) = (Arc::clone(owner), Arc::clone(owner));
    let follow = serving.follower(move |receipt| noting.note(receipt));
    let serve = endpoint.as_ref().map(|endpoint| endpoint.starter(Arc::clone(&owner)));
    let serve = serve.map_err(|error| {
        tell!("dewar: this run cannot be asked or changed: {error:#}");
    });
    Box::new(move |control| {
        if let Some(line) = control.bounded().filter(|_| tells) {
            tell!("dewar: {line}");
        }
        owner.begin(control.clone());
        if decides {
            control.serve_inside(Box::new(inside::compile));
        }
        if let Some(prompter) = prompter {
            prompter.serve(control.clone(), owner);
        }
        follow(control.clone());
        if let Ok(serve) = serve {
            serve(control);
        }
    })
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
