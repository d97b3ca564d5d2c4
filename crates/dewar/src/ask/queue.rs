//! The questions of a run: which are open, which are settled, and what an answer does.

use super::{
    case::{Case, Choice, bare, is_named},
    error::AskError,
    modes::TerminalModes,
    state::{Considered, MOST_LOANS, State, judge, within_rate},
};
use crate::{
    control::{Reply, Request},
    fitting::Fitting,
    proposal::of_profile,
    run::{
        Denial,
        link::{Answered, Sender, Setup, ToRun},
    },
};
use monitor::Verdict;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    iter,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{self, SyncSender},
    },
    time::{Duration, Instant, SystemTime},
};

/// How long the run may take to answer. Most of a change is stopping its processes.
const PATIENCE: Duration = Duration::from_secs(120);
/// Events that somebody who listens may be behind.
const MOST_EVENTS: usize = 256;

/// The questions of one run, and the way to it.
pub(crate) struct QuestionQueue {
    pub(crate) setup: Setup,
    pub(super) modes: TerminalModes,
    link: Sender,
    /// The profile that the run was started with. Whoever looks at it takes a while.
    fitting: Mutex<Fitting>,
    state: Mutex<State>,
    changed: Condvar,
    replies: Mutex<(u64, HashMap<u64, SyncSender<Reply>>)>,
}

impl QuestionQueue {
    pub(crate) fn new(setup: Setup, link: Sender) -> anyhow::Result<Self> {
        let fitting = of_profile(&setup.argument, &setup.directory, setup.variables.clone())?;
        for (name, found) in &setup.hosts {
            fitting.know(name, found.clone());
        }
        // What is wrong with it is said before anything runs.
        fitting.compile(&[])?;
        let (fitting, state) = (Mutex::new(fitting), Mutex::new(State::new()));
        let (changed, replies) = (Condvar::new(), Mutex::default());
        let modes = TerminalModes::default();
        Ok(Self { setup, modes, link, fitting, state, changed, replies })
    }

    /// Says something to the run. Without a run there is nothing to be done any more.
    pub(crate) fn say(&self, message: &ToRun) {
        if self.link.send(message).is_err() {
            self.end();
        }
    }

    /// Ends this process, as the run has ended.
    pub(crate) fn end(&self) -> ! {
        self.modes.end();
        self.remove_inner();
        let _ = super::socket::path(&self.setup.id).map(std::fs::remove_file);
        std::process::exit(0);
    }

    /// The socket for the programs inside goes.
    pub(crate) fn remove_inner(&self) {
        if let Some(propose) = &self.setup.propose {
            let _ = std::fs::remove_file(&propose.socket);
        }
    }

    /// Has the run do something, and waits for what came of it.
    pub(crate) fn request(&self, request: Request) -> Result<Reply, AskError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let number = {
            let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
            replies.0 += 1;
            let number = replies.0;
            replies.1.insert(number, sender);
            number
        };
        self.say(&ToRun::Request(number, Box::new(request)));
        receiver.recv_timeout(PATIENCE).map_err(|_| AskError::Silent)
    }

    /// The run has answered.
    pub(crate) fn replied(&self, number: u64, reply: Reply) {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = replies.1.remove(&number) {
            let _ = sender.try_send(reply);
        }
    }

    pub(crate) fn sits_at_terminal(&self) {
        self.state().has_terminal = true;
    }

    /// A call waits.
    pub(crate) fn ask(&self, id: u64, call: u64, denial: &Denial) {
        match self.consider((id, call), denial) {
            Some(verdict) => self.say(&ToRun::Answer(id, verdict)),
            None => self.changed.notify_all(),
        }
    }

    /// What becomes of a denial; `None` if it is asked about.
    fn consider(&self, waiting: (u64, u64), denial: &Denial) -> Option<Verdict> {
        let begun = self.state().begin(&self.setup, waiting);
        let lent = match begun {
            Ok(lent) => lent,
            Err(verdict) => return Some(verdict),
        };
        // Without the state: others answer and withdraw meanwhile.
        let judged = {
            let fitting = self.fitting.lock().unwrap_or_else(PoisonError::into_inner);
            judge(&fitting, &self.setup, &lent, denial)
        };
        let case = match judged {
            Ok(case) => case,
            Err(verdict) => return Some(verdict),
        };
        let mut state = self.state();
        match state.conclude(&self.setup, waiting, case) {
            Considered::Verdict(verdict) => Some(verdict),
            Considered::Open(event) => {
                state.broadcast(&event);
                None
            }
            Considered::Joined => None,
        }
    }

    /// A program inside proposes something; its number, by which the answer is known.
    pub(crate) fn propose(&self, case: Case) -> Result<u64, AskError> {
        let mut state = self.state();
        if let Some(open) = state.open.values_mut().find(|open| open.shows_the_same(&case)) {
            open.proposers.extend(case.proposers);
            return Ok(open.number);
        }
        if state.refused.contains(&bare(&case.lines)) {
            return Err(AskError::Refused);
        }
        if !state.is_heard() {
            return Err(AskError::NobodyThere);
        }
        if !within_rate(&mut state.asked, self.setup.rate) {
            return Err(AskError::TooMany);
        }
        let (number, event) = state.enter(case);
        state.broadcast(&event);
        drop(state);
        self.changed.notify_all();
        Ok(number)
    }

    /// A call waits no longer.
    pub(crate) fn gone(&self, id: u64) {
        let mut state = self.state();
        let mut is_known = false;
        for case in state.open.values_mut() {
            let before = case.waiting.len();
            case.waiting.retain(|(waiting, _)| *waiting != id);
            is_known |= case.waiting.len() < before;
        }
        if !is_known && state.gone.len() < MOST_LOANS {
            state.gone.insert(id);
        }
        state.withdraw_deserted();
        drop(state);
        self.changed.notify_all();
    }

    /// What is open for longer than it may is denied, every time; what nobody waits for any more is
    /// withdrawn.
    pub(crate) fn expire(&self) {
        let mut late = Vec::new();
        {
            let mut state = self.state();
            if state.withdraw_deserted() {
                self.changed.notify_all();
            }
            let now = Instant::now();
            let is_late = |case: &&Case| case.until <= now;
            let numbers: Vec<u64> =
                state.open.values().filter(is_late).map(|case| case.number).collect();
            for number in numbers {
                if !state.busy.contains(&number) {
                    late.extend(state.open.remove(&number));
                    state.end(number, "time-out", "nobody");
                }
            }
        }
        for case in &late {
            self.settle(case, Verdict::NotNow, ("time-out", "nobody"));
        }
    }

    /// Carries an answer out.
    ///
    /// # Errors
    ///
    /// Why it was not, and what of it was; the question is open as before.
    pub(crate) fn answer(
        &self,
        number: u64,
        choice: Choice,
        named: Option<&str>,
        by: &str,
    ) -> Result<(), AskError> {
        let case = {
            let mut state = self.state();
            state.withdraw_deserted();
            let Some(case) = state.open.get(&number).cloned() else {
                return Err(AskError::NotOpen(number));
            };
            if !case.choices.contains(&choice) {
                let names: Vec<_> = case.choices.iter().map(|choice| choice.name()).collect();
                let (choice, choices) = (choice.name(), names.join(", "));
                return Err(AskError::NoChoice { choice, choices });
            }
            if case.secret && choice != Choice::No && !is_named(&case, named) {
                return Err(AskError::Unnamed);
            }
            if !state.busy.insert(number) {
                return Err(AskError::Answered);
            }
            case
        };
        let done = self.carry_out(&case, choice);
        let mut state = self.state();
        state.busy.remove(&number);
        let verdict = done?;
        // Those that joined meanwhile hear the answer, too.
        let case = state.open.remove(&number).unwrap_or(case);
        match choice {
            Choice::No => drop(state.refused.insert(bare(&case.lines))),
            Choice::Once => state.lend(&case),
            Choice::Profile if case.amendments.is_none() => state.write(&case.lines),
            // It is granted now, to the domain that it was asked for: others ask for themselves.
            Choice::Run | Choice::Profile => {}
        }
        // The rest were about this line, and are not lent this call.
        let rest = if choice == Choice::Once { Vec::new() } else { state.settled_with(&case) };
        for case in iter::once(&case).chain(&rest) {
            state.end(case.number, choice.name(), by);
        }
        drop(state);
        for case in iter::once(&case).chain(&rest) {
            self.settle(case, verdict, (choice.name(), by));
        }
        self.changed.notify_all();
        Ok(())
    }

    /// What was granted without a question goes into the record.
    pub(crate) fn granted(&self, what: String, by: &str) {
        self.note(what, "run", by);
    }

    fn settle(&self, case: &Case, verdict: Verdict, (answer, by): (&str, &str)) {
        for (id, _) in &case.waiting {
            self.say(&ToRun::Answer(*id, verdict));
        }
        self.note(case.summary(), answer, by);
    }

    fn note(&self, what: String, answer: &str, by: &str) {
        let (answer, by) = (answer.to_owned(), by.to_owned());
        self.say(&ToRun::Note(Answered { when: SystemTime::now(), what, answer, by }));
    }

    /// Waits for the answer to a question.
    pub(crate) fn answer_to(&self, number: u64) -> String {
        loop {
            {
                let state = self.state();
                if !state.open.contains_key(&number) {
                    let ended = state.ended.iter().find(|(ended, _)| *ended == number);
                    return ended.map_or_else(|| "no".into(), |(_, answer)| answer.clone());
                }
            }
            self.wait(Duration::from_millis(200));
        }
    }

    /// The open questions.
    pub(crate) fn open(&self) -> Vec<Case> {
        self.state().open.values().cloned().collect()
    }

    pub(crate) fn is_open(&self, number: u64) -> bool {
        self.state().open.contains_key(&number)
    }

    /// Waits until something changes, for a while.
    pub(crate) fn wait(&self, patience: Duration) {
        let waited = self.changed.wait_timeout(self.state(), patience);
        drop(waited);
    }

    /// Hears every event from now on, first those that are open.
    pub(crate) fn listen(&self, who: u64) -> mpsc::Receiver<String> {
        let (sender, receiver) = mpsc::sync_channel(MOST_EVENTS);
        let mut state = self.state();
        for case in state.open.values() {
            let _ = sender.try_send(json!({ "question": case.json() }).to_string());
        }
        state.listeners.push((who, sender));
        receiver
    }

    /// Says something to one who listens.
    pub(crate) fn tell(&self, who: u64, event: &Value) {
        let state = self.state();
        if let Some((_, listener)) = state.listeners.iter().find(|(other, _)| *other == who) {
            let _ = listener.try_send(event.to_string());
        }
    }

    pub(crate) fn leave(&self, who: u64) {
        self.state().listeners.retain(|(other, _)| *other != who);
    }

    /// Does something with the profile that the run was started with.
    pub(crate) fn with_fitting<T>(&self, with: impl FnOnce(&Fitting) -> T) -> T {
        with(&self.fitting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
