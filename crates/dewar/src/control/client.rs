//! Finding a run, and talking to it.

use super::wire::{Packed, PolicyChange, Reply, Request, Status, pack, unpack};
use crate::failure::{Failed, Usage};
use anyhow::{Context as _, bail};
use clap::Args;
use ipc::{Call, ConnectError, Port, Transport};
use runs::RunDirectory;
use std::{io, os::fd::AsFd as _, time::Duration};

/// How long a run may take to answer. Most of a change is stopping its processes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Which run is meant.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArg {
    /// The run: its id, the beginning of it, its name, or `last`; may be left out when only one
    /// runs
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// A run that answers.
pub(crate) struct Run {
    pub(crate) status: Status,
    port: Port,
}

impl Run {
    /// Every run of this user, the oldest first. What runs that were killed have left is removed.
    pub(crate) fn all() -> anyhow::Result<Vec<Self>> {
        let mut runs = Vec::new();
        for place in RunDirectory::all() {
            for entry in place.entries()? {
                match Port::connect(&place.socket(&entry), Transport::Socket) {
                    Ok(port) => runs.extend(Self::greet(port)),
                    Err(ConnectError::Io(error)) if is_refused(&error) => {
                        place.remove_stale(&entry);
                    }
                    // It is starting, or ending, or not ours.
                    Err(_) => {}
                }
            }
        }
        runs.sort_by_key(|run| run.status.started);
        Ok(runs)
    }

    /// The run that a person means.
    ///
    /// # Errors
    ///
    /// [`Usage`] if there is none, or more than one.
    pub(crate) fn find(arg: &RunArg) -> anyhow::Result<Self> {
        let mut runs = Self::all()?;
        let Some(name) = &arg.run else {
            return match runs.len() {
                1 => Ok(runs.remove(0)),
                0 => bail!(nothing_runs()),
                _ => bail!(Usage(format!("which run? {}", list(&runs)))),
            };
        };
        if runs.is_empty() {
            bail!(nothing_runs());
        }
        if name == "last" {
            return runs.pop().context("no run");
        }
        let exact = |run: &Self| run.status.id == *name || run.status.name.as_ref() == Some(name);
        if let Some(index) = runs.iter().position(exact) {
            return Ok(runs.remove(index));
        }
        let (mut found, others): (Vec<Self>, _) =
            runs.into_iter().partition(|run| run.status.id.starts_with(name.as_str()));
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => {
                let names = others.iter().map(|run| &run.status);
                let names = names.flat_map(|it| [Some(it.id.as_str()), it.name.as_deref()]);
                let meant = cli::look::did_you_mean(name, names.flatten());
                bail!(Usage(format!(
                    "no run is called `{}`{meant}; there are {}",
                    monitor::visible(name),
                    list(&others)
                )))
            }
            _ => bail!(Usage(format!(
                "`{name}` is the beginning of more than one: {}",
                list(&found)
            ))),
        }
    }

    /// `None` if it does not answer as a run does.
    fn greet(mut port: Port) -> Option<Self> {
        match ask(&mut port, Request::Status) {
            Ok(Reply::Status(status)) => {
                port.set_timeout(Some(PATIENCE));
                Some(Self { status: *status, port })
            }
            _ => None,
        }
    }

    /// Asks.
    ///
    /// # Errors
    ///
    /// [`Failed`] if it refuses, or has ended.
    pub(crate) fn ask(&mut self, request: Request) -> anyhow::Result<Reply> {
        match ask(&mut self.port, request) {
            Ok(Reply::Refused(why)) => bail!(Failed(why)),
            Ok(reply) => Ok(reply),
            Err(error) => bail!(Failed(format!("run {}: {error:#}", self.status.id))),
        }
    }

    /// Asks for a change, and returns what came of it.
    ///
    /// # Errors
    ///
    /// As for [`Run::ask`].
    pub(crate) fn change(&mut self, request: Request) -> anyhow::Result<PolicyChange> {
        match self.ask(request)? {
            Reply::Done(change) => Ok(change),
            _ => bail!(odd()),
        }
    }
}

/// The answer was not to the question.
pub(crate) fn odd() -> Failed {
    Failed("the run gave an answer to something else".into())
}

fn ask(port: &mut Port, request: Request) -> anyhow::Result<Reply> {
    let Packed { body, file } = pack(request)?;
    let descriptors: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
    let reply = port.send(Call { body: &body, descriptors: &descriptors, effective: None })?;
    unpack(reply.body, reply.descriptors)
}

fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

fn nothing_runs() -> Usage {
    Usage("nothing runs; start something with `dewar run -- COMMAND`".into())
}

fn list(runs: &[Run]) -> String {
    let one = |run: &Run| match &run.status.name {
        Some(name) => format!("{} ({name})", run.status.id),
        None => run.status.id.clone(),
    };
    runs.iter().map(one).collect::<Vec<_>>().join(", ")
}
