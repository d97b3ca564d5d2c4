//! Finding a run, and talking to it.

use super::{
    ended::ended,
    unheard::{self, Unheard, ending, is_stopped, lives},
    wire::{Packed, PolicyChange, Reply, Request, Status, pack, unpack},
};
use crate::failure::{Failed, Usage};
use anyhow::{Context as _, bail};
use clap::Args;
use ipc::{Call, ConnectError, Port, Transport};
use runs::{ControlEntry, RunDirectory};
use std::{
    io,
    os::fd::AsFd as _,
    thread,
    time::{Duration, Instant},
};

/// How long a run may take to answer. Most of a change is stopping its processes.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a run that is ending takes at most to take its socket away, and between two looks
/// whether it has.
const ENDING: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);

/// Which run is meant.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArg {
    /// The run: its id, the beginning of it, its name, or `last` for the one that started last; may
    /// be left out when only one runs
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// A run that answers.
pub(crate) struct Run {
    pub(crate) status: Status,
    port: Port,
}

impl Run {
    /// Every run of this user that answers, the oldest first. What runs that were killed have left
    /// is removed.
    pub(crate) fn all() -> anyhow::Result<Vec<Self>> {
        Ok(Self::and_unheard()?.0)
    }

    /// The same, and those that do not answer though their monitors have not ended.
    pub(crate) fn and_unheard() -> anyhow::Result<(Vec<Self>, Vec<Unheard>)> {
        let (mut runs, mut unheard) = (Vec::new(), Vec::new());
        for place in RunDirectory::all() {
            for entry in place.entries()? {
                let pid = u32::try_from(entry.pid).ok();
                let stopped = || pid.filter(|pid| is_stopped(*pid));
                let (path, by) = (place.socket(&entry), Transport::Socket);
                let port = match stopped() {
                    Some(_) => Port::connect_within(&path, by, unheard::PATIENCE),
                    None => Port::connect(&path, by),
                };
                let answered = match port {
                    Ok(port) => Self::greet(port),
                    Err(ConnectError::Io(error)) if is_refused(&error) => {
                        place.remove_stale(&entry);
                        continue;
                    }
                    Err(_) => None,
                };
                match (answered, stopped(), pid) {
                    (Some(run), ..) => runs.push(run),
                    // Perhaps since it was asked.
                    (None, Some(pid), _) => unheard.push(Unheard::of(entry.id, pid, true)),
                    (None, None, Some(pid)) if is_there(&place, &entry, pid) => {
                        unheard.push(Unheard::of(entry.id, pid, false));
                    }
                    (None, None, _) => {}
                }
            }
        }
        runs.sort_by_key(|run| run.status.started);
        unheard.sort_by_key(Unheard::started);
        Ok((runs, unheard))
    }

    /// The run that a person means.
    ///
    /// # Errors
    ///
    /// [`Usage`] if there is none, or more than one; [`Failed`] if it does not answer.
    pub(crate) fn find(arg: &RunArg) -> anyhow::Result<Self> {
        let (mut runs, unheard) = Self::and_unheard()?;
        let Some(name) = &arg.run else {
            return match (runs.len(), &unheard[..]) {
                (1, []) => Ok(runs.remove(0)),
                (0, []) => bail!(nothing_runs()),
                (0, [one]) => bail!(one.refusal()),
                _ => bail!(Usage(format!("which run? {}", list(&runs, &unheard)))),
            };
        };
        if name == "last" {
            let last = runs.last().map(|run| run.status.started);
            if let Some(unheard) = unheard.last().filter(|it| it.started() >= last) {
                bail!(unheard.refusal());
            }
            return runs.pop().with_context(nothing_runs);
        }
        match Self::take_exact(name, &mut runs, &unheard)? {
            Some(run) => Ok(run),
            None => Self::begins_with(name, runs, &unheard),
        }
    }

    /// The run with this very id or name. Two that were started at once can have one name: neither
    /// is meant then.
    fn take_exact(
        name: &str,
        runs: &mut Vec<Self>,
        unheard: &[Unheard],
    ) -> anyhow::Result<Option<Self>> {
        let mut found: Vec<Self> = runs.extract_if(.., |run| run.is_called(name)).collect();
        let halted: Vec<&Unheard> = unheard.iter().filter(|it| it.is_called(name)).collect();
        if found.len() + halted.len() > 1 {
            let all = list(&found, halted);
            let name = monitor::visible(name);
            bail!(Usage(format!(
                "more than one run is called `{name}`; say which by its id: {all}"
            )));
        }
        Ok(found.pop())
    }

    fn is_called(&self, name: &str) -> bool {
        self.status.id == name || self.status.name.as_deref() == Some(name)
    }

    /// The run that is called `name`, or whose id alone begins so, if it goes on and answers.
    pub(crate) fn going_on(name: &str) -> anyhow::Result<Option<Self>> {
        const LEAST: usize = 2;
        let (mut runs, unheard) = Self::and_unheard()?;
        if let Some(run) = Self::take_exact(name, &mut runs, &unheard)? {
            return Ok(Some(run));
        }
        runs.retain(|run| name.len() >= LEAST && run.status.id.starts_with(name));
        Ok(runs.pop().filter(|_| runs.is_empty()))
    }

    /// The run whose id begins so; of those that do not answer, also one that is called so.
    fn begins_with(name: &str, runs: Vec<Self>, unheard: &[Unheard]) -> anyhow::Result<Self> {
        if let Some(it) = unheard.iter().find(|it| it.is_called(name)) {
            bail!(it.refusal());
        }
        if runs.is_empty() && unheard.is_empty() {
            bail!(ended(name).unwrap_or_else(nothing_runs));
        }
        let halted: Vec<&Unheard> = unheard.iter().filter(|it| it.id.starts_with(name)).collect();
        let (mut found, others): (Vec<Self>, _) =
            runs.into_iter().partition(|run| run.status.id.starts_with(name));
        match (found.len(), &halted[..]) {
            (1, []) => Ok(found.remove(0)),
            (0, [one]) => bail!(one.refusal()),
            (0, []) => {
                // What one is called that has written nothing down, nobody knows.
                if let Some(nameless) = unheard.iter().find(|it| it.begun.is_none()) {
                    bail!(nameless.refusal());
                }
                if let Some(ended) = ended(name) {
                    bail!(ended);
                }
                let names = others.iter().map(|run| &run.status);
                let names = names.flat_map(|it| [Some(it.id.as_str()), it.name.as_deref()]);
                let meant = cli::look::did_you_mean(name, names.flatten());
                bail!(Usage(format!(
                    "no run is called `{}`{meant}; there are {}",
                    monitor::visible(name),
                    list(&others, unheard)
                )))
            }
            _ => bail!(Usage(format!(
                "`{name}` is the beginning of more than one: {}",
                list(&found, halted)
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
            Err(error) if lives(self.status.pid) => {
                let Status { id, pid, .. } = &self.status;
                let what = "so nobody knows what came of this; its monitor, process";
                let ends = ending(*pid);
                bail!(Failed(format!(
                    "run {id} does not answer ({error:#}), {what} {pid}, goes on: {ends}"
                )))
            }
            Err(error) => bail!(Failed(format!("run {}: {error:#}", self.status.id))),
        }
    }

    /// Whether its monitor has not ended.
    pub(crate) fn goes_on(&self) -> bool {
        lives(self.status.pid)
    }

    /// The same run, after it did not answer.
    pub(crate) fn into_unheard(self) -> Unheard {
        let Status { id, pid, .. } = self.status;
        Unheard::of(id, pid, is_stopped(pid))
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

/// Whether a run that has not answered has not ended either: for its end, its socket goes soon.
fn is_there(place: &RunDirectory, entry: &ControlEntry, pid: u32) -> bool {
    let until = Instant::now() + ENDING;
    loop {
        let is_listed = place.entries().is_ok_and(|all| all.contains(entry));
        if !is_listed || !lives(pid) {
            return false;
        }
        if Instant::now() > until {
            return true;
        }
        thread::sleep(LOOK);
    }
}

fn list<'a>(runs: &[Run], unheard: impl IntoIterator<Item = &'a Unheard>) -> String {
    let one = |run: &Run| match &run.status.name {
        Some(name) => format!("{} ({name})", run.status.id),
        None => run.status.id.clone(),
    };
    let unheard = unheard.into_iter().map(Unheard::called);
    runs.iter().map(one).chain(unheard).collect::<Vec<_>>().join(", ")
}
