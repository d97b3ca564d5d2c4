//! The state of questions: what is open, settled and lent, and who listens.

use super::case::{Case, bare};
use crate::{
    fitting::{Fitting, access},
    output::tell,
    run::{Denial, link::Setup},
};
use learn::Line;
use monitor::Verdict;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::mpsc::SyncSender,
    time::{Duration, Instant},
};

/// The time that a rate is about.
const MINUTE: Duration = Duration::from_secs(60);
/// Denials that are looked at in a minute: most are none to ask about.
const MOST_LOOKS: usize = 300;
/// Calls whose loans are remembered.
pub(super) const MOST_LOANS: usize = 256;
/// What is asked, and what was.
pub(super) struct State {
    pub(super) last: u64,
    pub(super) open: BTreeMap<u64, Case>,
    /// Being carried out.
    pub(super) busy: HashSet<u64>,
    pub(super) refused: HashSet<Vec<Line>>,
    /// Put into the profile, where the running sandbox cannot be given it: each call is.
    pub(super) written: HashSet<Vec<Line>>,
    /// What calls were lent, the oldest first.
    pub(super) loans: VecDeque<(u64, Vec<Line>)>,
    pub(super) asked: VecDeque<Instant>,
    pub(super) looked: VecDeque<Instant>,
    pub(super) listeners: Vec<(u64, SyncSender<String>)>,
    /// Somebody sits at a terminal.
    pub(super) has_terminal: bool,
    pub(super) told_of_flood: Option<Instant>,
    /// Questions that were answered, and how, the last ones.
    pub(super) ended: VecDeque<(u64, String)>,
    /// Withdrawn before they were looked at.
    pub(super) gone: HashSet<u64>,
}

/// What becomes of a denial.
pub(super) enum Considered {
    Verdict(Verdict),
    Open(Value),
    Joined,
}

/// The question that a denial of a call is, to which something was `lent`; or what becomes of it.
pub(super) fn judge(
    fitting: &Fitting,
    setup: &Setup,
    lent: &[Line],
    denial: &Denial,
) -> Result<Case, Verdict> {
    let is_revoked = denial.profile_rules.iter().any(|rule| rule.starts_with("revoked by "));
    if !lent.is_empty()
        && !is_revoked
        && let Ok(judge) = fitting.judge(lent)
        && judge.missing(&access(&denial.record)).is_empty()
    {
        return Err(Verdict::Once);
    }
    // It is denied as always: what nobody could grant is no question.
    let until = Instant::now() + setup.timeout;
    Case::of(setup, fitting, denial, until).map_err(|_| Verdict::Denied)
}

impl State {
    /// Nothing was asked yet.
    pub(super) fn new() -> Self {
        Self {
            last: 0,
            open: BTreeMap::new(),
            busy: HashSet::new(),
            refused: HashSet::new(),
            written: HashSet::new(),
            loans: VecDeque::new(),
            asked: VecDeque::new(),
            looked: VecDeque::new(),
            listeners: Vec::new(),
            has_terminal: false,
            told_of_flood: None,
            ended: VecDeque::new(),
            gone: HashSet::new(),
        }
    }

    /// What a call was lent before it is looked at, or what becomes of it at once.
    pub(super) fn begin(
        &mut self,
        setup: &Setup,
        waiting: (u64, u64),
    ) -> Result<Vec<Line>, Verdict> {
        let is_gone = self.gone.remove(&waiting.0);
        if is_gone || !setup.asks || !within_rate(&mut self.looked, MOST_LOOKS) {
            return Err(Verdict::NotNow);
        }
        let loan = self.loans.iter().find(|(call, _)| *call == waiting.1);
        Ok(loan.map(|(_, lines)| lines.clone()).unwrap_or_default())
    }

    /// What becomes of a denial that is a question.
    pub(super) fn conclude(
        &mut self,
        setup: &Setup,
        waiting: (u64, u64),
        mut case: Case,
    ) -> Considered {
        if self.gone.remove(&waiting.0) {
            return Considered::Verdict(Verdict::NotNow);
        }
        let lines = bare(&case.lines);
        if self.refused.contains(&lines) {
            return Considered::Verdict(Verdict::Denied);
        }
        if self.written.contains(&lines) {
            return Considered::Verdict(Verdict::Once);
        }
        // An answer is for what was shown: what else the same line would grant is asked by itself.
        if let Some(open) = self.open.values_mut().find(|open| open.shows_the_same(&case)) {
            open.waiting.push(waiting);
            return Considered::Joined;
        }
        if !self.is_heard() {
            return Considered::Verdict(Verdict::NotNow);
        }
        if !within_rate(&mut self.asked, setup.rate) {
            self.tell_of_flood(setup.rate);
            return Considered::Verdict(Verdict::NotNow);
        }
        case.waiting.push(waiting);
        Considered::Open(self.enter(case).1)
    }

    pub(super) fn enter(&mut self, case: Case) -> (u64, Value) {
        self.last += 1;
        let case = Case { number: self.last, ..case };
        let event = json!({ "question": case.json() });
        self.open.insert(self.last, case);
        (self.last, event)
    }

    pub(super) fn is_heard(&self) -> bool {
        self.has_terminal || !self.listeners.is_empty()
    }

    pub(super) fn lend(&mut self, case: &Case) {
        for (_, call) in &case.waiting {
            match self.loans.iter_mut().find(|(other, _)| other == call) {
                Some((_, lines)) => lines.extend(case.lines.iter().cloned()),
                None => self.loans.push_back((*call, case.lines.clone())),
            }
        }
        while self.loans.len() > MOST_LOANS {
            self.loans.pop_front();
        }
    }

    /// The profile grants `lines` from now on, and the running sandbox cannot be given them.
    pub(super) fn write(&mut self, lines: &[Line]) {
        self.written.insert(bare(lines));
    }

    /// Takes out the questions that the answer to `case` settles, beside its own: it was about the
    /// lines, and theirs are the same.
    pub(super) fn settled_with(&mut self, case: &Case) -> Vec<Case> {
        let lines = bare(&case.lines);
        let same = |open: &&Case| !self.busy.contains(&open.number) && bare(&open.lines) == lines;
        let numbers: Vec<u64> = self.open.values().filter(same).map(|open| open.number).collect();
        numbers.iter().filter_map(|number| self.open.remove(number)).collect()
    }

    /// Withdraws what nobody waits for any more and nobody is answering; whether there was some.
    pub(super) fn withdraw_deserted(&mut self) -> bool {
        let is_deserted = |open: &&Case| !self.busy.contains(&open.number) && open.is_deserted();
        let numbers: Vec<u64> =
            self.open.values().filter(is_deserted).map(|open| open.number).collect();
        for number in &numbers {
            self.open.remove(number);
            self.end(*number, "withdrawn", "the program");
        }
        !numbers.is_empty()
    }

    /// A question is closed.
    pub(super) fn end(&mut self, number: u64, answer: &str, by: &str) {
        self.ended.push_back((number, answer.to_owned()));
        while self.ended.len() > MOST_LOANS {
            self.ended.pop_front();
        }
        self.broadcast(&closed(number, answer, by));
    }

    pub(super) fn broadcast(&mut self, event: &Value) {
        let line = event.to_string();
        // Who does not read is not waited for.
        self.listeners.retain(|(_, listener)| listener.try_send(line.clone()).is_ok());
    }

    fn tell_of_flood(&mut self, rate: usize) {
        self.broadcast(&json!({ "flood": { "rate": rate } }));
        if self.told_of_flood.is_none_or(|told| told.elapsed() > MINUTE) {
            self.told_of_flood = Some(Instant::now());
            tell!("dewar: more than {rate} questions in a minute; more are denied unasked");
        }
    }
}

/// The event of a question that is closed.
fn closed(number: u64, answer: &str, by: &str) -> Value {
    json!({ "closed": { "id": number, "answer": answer, "by": by } })
}

/// Whether one more fits into this minute; then it is counted.
pub(super) fn within_rate(times: &mut VecDeque<Instant>, most: usize) -> bool {
    while times.front().is_some_and(|time| time.elapsed() > MINUTE) {
        times.pop_front();
    }
    let fits = times.len() < most;
    if fits {
        times.push_back(Instant::now());
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::case::Choice;
    use learn::Widening;

    /// Question 1, for which one call waits.
    fn question() -> Case {
        Case {
            number: 1,
            waiting: vec![(7, 3)],
            program: "cat".into(),
            pid: 2,
            wants: Vec::new(),
            class: "file".into(),
            object: "/key".into(),
            lines: Vec::new(),
            amendments: None,
            also: Widening::default(),
            taken: Vec::new(),
            secret: false,
            proposed: false,
            proposers: Vec::new(),
            choices: vec![Choice::No],
            until: Instant::now(),
        }
    }

    #[test]
    fn what_is_being_answered_is_not_withdrawn() {
        let mut state = State::new();
        state.open.insert(1, question());
        assert!(!state.withdraw_deserted(), "a call waits");
        state.open.values_mut().for_each(|case| case.waiting.clear());
        state.busy.insert(1);
        assert!(!state.withdraw_deserted(), "somebody answers");
        assert!(state.ended.is_empty());
        state.busy.clear();
        assert!(state.withdraw_deserted());
        assert_eq!(state.ended.back(), Some(&(1, "withdrawn".to_owned())));
    }
}
