//! A run's side of questions: its prompter outside is started, told what is denied, and heard.

use super::{
    RunRequest,
    link::{Answered, Receiver, Sender, Setup, ToPrompter, ToRun},
    owner::Owner,
    prepare::Profile,
};
use crate::{
    control::{Reply, Service as _},
    output::tell,
};
use anyhow::{Context as _, bail};
use confine::launch::Inherited;
use monitor::{Asking, Control, Hold};
use std::{
    os::{
        fd::{OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

/// A prompter that does not answer in its time is not waited for much longer.
const GRACE: Duration = Duration::from_secs(10);
/// Answers that are kept for the record.
const MOST_NOTES: usize = 1_000;

/// A prompter that is ready.
pub(super) struct Prompter {
    sender: Arc<Sender>,
    receiver: Receiver,
    notes: Notes,
    timeout: Duration,
}

/// The answers of a run so far.
#[derive(Clone, Default)]
pub(super) struct Notes(Arc<Mutex<Vec<Answered>>>);

impl Notes {
    pub(super) fn all(&self) -> Vec<Answered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, note: Answered) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < MOST_NOTES {
            notes.push(note);
        }
    }
}

impl Prompter {
    /// Starts one, while this process is outside of the view and has one thread.
    pub(super) fn start(
        request: &RunRequest,
        profile: &Profile,
        inherited: &Inherited,
        id: &str,
    ) -> anyhow::Result<Self> {
        let (own, other) = UnixStream::pair().context("no sockets")?;
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let mut prompter = Command::new(program);
        prompter.args(["ask", "--prompter", "outer"]).stdin(Stdio::from(OwnedFd::from(other)));
        let status = prompter.stdout(Stdio::null()).status().context("cannot start `dewar ask`")?;
        drop(prompter);
        if !status.success() {
            bail!("who would ask cannot be started; nothing was run");
        }
        let sender = Arc::new(Sender::new(own.try_clone().context("no descriptor")?));
        let mut receiver = Receiver::new(own);
        let hosts = profile.compiled.named_hosts();
        let setup = Setup {
            id: id.to_owned(),
            name: request.name.clone(),
            command: request.command.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
            argument: profile.argument.clone(),
            directory: std::env::current_dir().context("cannot tell the working directory")?,
            variables: profile.variables.clone(),
            hosts: hosts.map(|(name, found)| (name.to_owned(), found)).collect(),
            monitor: std::process::id(),
            asks: request.ask.is_some(),
            elsewhere: inherited.leading_past_terminal().map(elsewhere),
            timeout: request.ask.map_or(DEFAULT_TIMEOUT, |ask| ask.timeout),
            rate: request.ask.map_or(DEFAULT_RATE, |ask| ask.rate),
            propose: profile.proposing.socket.clone(),
        };
        let timeout = setup.timeout;
        sender.send(&ToPrompter::Begin(Box::new(setup))).context("who would ask has gone")?;
        match receiver.next() {
            Some(ToRun::Ready) => {}
            Some(ToRun::Failed(why)) => bail!("nobody can be asked, so nothing was run: {why}"),
            _ => bail!("nobody can be asked, so nothing was run"),
        }
        Ok(Self { sender, receiver, notes: Notes::default(), timeout })
    }

    pub(super) fn notes(&self) -> Notes {
        self.notes.clone()
    }

    /// Whom the monitor asks.
    pub(super) fn asking(&self, owner: &Arc<Owner>) -> Asking {
        let (put, owner) = (Arc::clone(&self.sender), Arc::clone(owner));
        let withdraw = Arc::clone(&self.sender);
        Asking {
            // Without a prompter, nobody answers: the thread that hears of its end says so.
            put: Box::new(move |question| {
                let Some(denial) = owner.denial(&question.record).map(Box::new) else {
                    return false;
                };
                let (id, call) = (question.id, question.call);
                let _ = put.send(&ToPrompter::Ask { id, call, denial });
                true
            }),
            withdraw: Box::new(move |id| drop(withdraw.send(&ToPrompter::Gone(id)))),
            patience: self.timeout + GRACE,
        }
    }

    /// Does what the prompter says, from now until it ends.
    pub(super) fn serve(self, control: Control, owner: Arc<Owner>) {
        let fails = control.clone();
        let serve = move || {
            self.hear(&control, &owner);
            control.nobody_answers();
        };
        if thread::Builder::new().name("ask".into()).spawn(serve).is_err() {
            tell!("dewar: cannot start a thread, so nobody can be asked");
            fails.nobody_answers();
        }
    }

    fn hear(mut self, control: &Control, owner: &Arc<Owner>) {
        let holds: Arc<Mutex<Option<(u64, Hold)>>> = Arc::default();
        while let Some(said) = self.receiver.next() {
            match said {
                ToRun::Ready | ToRun::Failed(_) => {}
                ToRun::Answer(id, verdict) => control.answer(id, verdict),
                ToRun::Note(note) => self.notes.push(note),
                ToRun::Request(number, request) => {
                    let (owner, sender) = (Arc::clone(owner), Arc::clone(&self.sender));
                    // A change takes its time, and others answer meanwhile.
                    let answer = move || {
                        let reply = Box::new(owner.answer(*request));
                        let _ = sender.send(&ToPrompter::Reply(number, reply));
                    };
                    if thread::Builder::new().name("prompter".into()).spawn(answer).is_err() {
                        let why = Box::new(Reply::Refused("no thread".into()));
                        let _ = self.sender.send(&ToPrompter::Reply(number, why));
                    }
                }
                ToRun::Hold(number) => {
                    let sender = Arc::clone(&self.sender);
                    let ended = move || drop(sender.send(&ToPrompter::Loose(number)));
                    let hold = control.hold(ended);
                    let stands = hold.is_some();
                    *lock(&holds) = hold.map(|hold| (number, hold));
                    let _ = self.sender.send(&ToPrompter::Held(number, stands));
                }
                ToRun::LetGo(number) => {
                    let mut hold = lock(&holds);
                    if hold.as_ref().is_some_and(|(held, _)| *held == number) {
                        *hold = None;
                    }
                }
            }
        }
    }
}

/// Why nobody is asked on the terminal of a run with this descriptor: whoever reads there does not
/// stand still with the sandbox.
fn elsewhere((fd, what): (RawFd, &str)) -> String {
    let name = match fd {
        0 => "standard input".to_owned(),
        1 => "standard output".to_owned(),
        2 => "standard error".to_owned(),
        _ => format!("descriptor {fd}"),
    };
    format!("{name} is {what}, and whoever is behind it could write over a question here")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a question is open, where nobody says.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Questions in a minute, where nobody says.
pub(super) const DEFAULT_RATE: usize = 10;
