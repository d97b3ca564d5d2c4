//! Who must have applied a change of policy before it is complete.
//!
//! A member joins with the policy state that it has applied, asks for later ones
//! ([`Member::next`]), and by asking again says that it has applied what it was told.
//! [`Members::complete`] waits for all of them: for one that has died no longer, and for one that
//! does not answer as long as [`Patience`] says.

use flask::Seqno;
use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How often members that have not answered are looked at.
const TICK: Duration = Duration::from_millis(10);

/// How often one that does not die is killed.
const KILLS: u32 = 8;

/// Who has applied which policy state.
pub struct Members {
    state: Mutex<State>,
    moved: Condvar,
}

struct State {
    seqno: Seqno,
    stopped: bool,
    last: u64,
    members: BTreeMap<u64, Entry>,
}

struct Entry {
    name: String,
    applied: Seqno,
    report: Vec<u8>,
    lives: Box<dyn Fn() -> bool + Send>,
}

/// What there is for a member to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// This policy state is in force.
    Later(Seqno),
    /// None is newer yet.
    Unchanged,
    /// The server ends.
    Stopped,
}

/// How long a change waits for a member, counted from its beginning; shorter first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Until it is said to be late.
    pub report: Duration,
    /// Until what it guards is to be frozen.
    pub freeze: Duration,
    /// Until it is to be killed.
    pub kill: Duration,
}

impl Default for Patience {
    /// 0.5, 2 and 10 seconds.
    fn default() -> Self {
        let [report, freeze, kill] = [500, 2_000, 10_000].map(Duration::from_millis);
        Self { report, freeze, kill }
    }
}

/// What is to be done about a member that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Say so.
    Report,
    /// Stop what it guards.
    Freeze,
    /// It has answered after all: let what was stopped go on.
    Thaw,
    /// Kill it. Said again while it lives, up to twice its time.
    Kill,
}

/// How it went with one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberOutcome {
    /// It has applied the change.
    Applied,
    /// It ended by itself.
    Gone,
    /// It was killed because it did not answer.
    Killed,
    /// It neither answered nor died: the change is not complete.
    Unreached,
}

/// A member, and how it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Its name.
    pub name: String,
    /// How it went.
    pub outcome: MemberOutcome,
    /// From the beginning of the change until that was known.
    pub after: Duration,
    /// What had to be done about it, the last such; `None` if it answered in time.
    pub stage: Option<Stage>,
    /// What it said about the change when it had applied it.
    pub report: Vec<u8>,
}

/// A place among [`Members`]; dropping it gives it up.
pub struct Member {
    members: Arc<Members>,
    id: u64,
}

impl Members {
    /// Nobody yet, at the policy state `seqno`.
    #[must_use]
    pub fn new(seqno: Seqno) -> Arc<Self> {
        let state = State { seqno, stopped: false, last: 0, members: BTreeMap::new() };
        Arc::new(Self { state: Mutex::new(state), moved: Condvar::new() })
    }

    /// One more member, which has applied the state `applied`. `lives` tells whether it still
    /// exists; it is asked when a change waits for it.
    #[must_use]
    pub fn join(
        self: &Arc<Self>,
        name: String,
        applied: Seqno,
        lives: impl Fn() -> bool + Send + 'static,
    ) -> Member {
        let mut state = self.lock();
        state.last += 1;
        let id = state.last;
        let entry = Entry { name, applied, report: Vec::new(), lives: Box::new(lives) };
        state.members.insert(id, entry);
        Member { members: Arc::clone(self), id }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().members.len()
    }

    /// Ends every wait, now and later.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.moved.notify_all();
    }

    /// Tells every member that the policy state `seqno` is in force, and returns when each has
    /// applied it, has ended, or has used up `patience`. `late` is called for those who do not
    /// answer, and must do what the [`Stage`] says. Nobody waits for a late member but this call.
    ///
    /// One change at a time: whoever changes the policy holds a lock over the change and this.
    pub fn complete(
        &self,
        seqno: Seqno,
        patience: Patience,
        mut late: impl FnMut(&str, Stage),
    ) -> Vec<Acknowledged> {
        let mut change = self.begin(seqno, patience);
        loop {
            let mut state = self.lock();
            let events = change.look(&mut state);
            if !events.is_empty() {
                drop(state);
                events.iter().for_each(|(name, stage)| late(name, *stage));
            } else if change.waiting.is_empty() {
                return change.done;
            } else {
                let woken = self.moved.wait_timeout(state, TICK);
                drop(woken.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// The first part of [`Members::complete`], for whoever waits for several changes at a time:
    /// [`Members::poll`] is the other.
    pub fn begin(&self, seqno: Seqno, patience: Patience) -> Completion {
        let mut state = self.lock();
        state.seqno = state.seqno.max(seqno);
        self.moved.notify_all();
        let waiting = state.members.iter().map(pending).collect();
        Completion { seqno, patience, begin: Instant::now(), waiting, done: Vec::new() }
    }

    /// Looks once how a change goes on, as [`Members::complete`] does: how it went, when it is
    /// complete.
    pub fn poll(
        &self,
        change: &mut Completion,
        mut late: impl FnMut(&str, Stage),
    ) -> Option<Vec<Acknowledged>> {
        let events = change.look(&mut self.lock());
        events.iter().for_each(|(name, stage)| late(name, *stage));
        change.waiting.is_empty().then(|| std::mem::take(&mut change.done))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change that members apply.
pub struct Completion {
    seqno: Seqno,
    patience: Patience,
    begin: Instant,
    waiting: Vec<Waited>,
    done: Vec<Acknowledged>,
}

impl Completion {
    /// Moves the members of which it is known how it went; returns what is to be done about
    /// others.
    fn look(&mut self, state: &mut State) -> Vec<(String, Stage)> {
        let mut events = Vec::new();
        let Self { seqno, patience, begin, waiting, done } = self;
        waiting.retain_mut(|waited| {
            waited.told.after = begin.elapsed();
            let settled = settle(state, *seqno, *patience, waited, &mut events);
            if settled {
                done.push(waited.told.clone());
            }
            !settled
        });
        events
    }
}

/// A member that a change waits for.
struct Waited {
    id: u64,
    told: Acknowledged,
    /// When it was last to be killed.
    killed: Duration,
}

fn pending((id, entry): (&u64, &Entry)) -> Waited {
    let told = Acknowledged {
        name: entry.name.clone(),
        outcome: MemberOutcome::Unreached,
        after: Duration::ZERO,
        stage: None,
        report: Vec::new(),
    };
    Waited { id: *id, told, killed: Duration::ZERO }
}

/// Whether it is known how it went with a member; if not, what is to be done about it goes into
/// `events`.
fn settle(
    state: &mut State,
    seqno: Seqno,
    patience: Patience,
    waited: &mut Waited,
    events: &mut Vec<(String, Stage)>,
) -> bool {
    let member = &mut waited.told;
    let killed = member.stage == Some(Stage::Kill);
    let gone = if killed { MemberOutcome::Killed } else { MemberOutcome::Gone };
    let Some(entry) = state.members.get(&waited.id) else {
        member.outcome = gone;
        return true;
    };
    if entry.applied >= seqno {
        if member.stage == Some(Stage::Freeze) {
            events.push((member.name.clone(), Stage::Thaw));
        }
        member.outcome = MemberOutcome::Applied;
        member.report.clone_from(&entry.report);
        return true;
    }
    if !(entry.lives)() {
        state.members.remove(&waited.id);
        member.outcome = gone;
        return true;
    }
    let stages = [
        (Stage::Report, patience.report),
        (Stage::Freeze, patience.freeze),
        (Stage::Kill, patience.kill),
    ];
    // One after the other, however late this looks.
    let next = stages.into_iter().find(|(stage, _)| member.stage.is_none_or(|it| it < *stage));
    let (stage, after) = match next {
        Some(next) => next,
        // Killed, and yet it lives: it waits for a device, or could not be killed at that moment.
        None if member.after >= patience.kill * 2 => return true,
        None => (Stage::Kill, waited.killed + patience.kill / KILLS),
    };
    if member.after >= after {
        (member.stage, waited.killed) = (Some(stage), member.after);
        events.push((member.name.clone(), stage));
    }
    false
}

impl Member {
    /// The policy state that it has applied.
    #[must_use]
    pub fn applied(&self) -> Seqno {
        self.members.lock().members.get(&self.id).map(|entry| entry.applied).unwrap_or_default()
    }

    /// Gives its place up; a wait under way ends with [`Progress::Unchanged`].
    pub fn leave(&self) {
        self.members.lock().members.remove(&self.id);
        self.members.moved.notify_all();
    }

    /// Says that this member has applied the state `applied`, with `report` about it, and waits up
    /// to `wait` for a later one.
    #[must_use]
    pub fn next(&self, applied: Seqno, report: &[u8], wait: Duration) -> Progress {
        let until = Instant::now() + wait;
        let mut state = self.members.lock();
        // Nobody has applied what was never in force.
        let in_force = applied.min(state.seqno);
        if let Some(entry) = state.members.get_mut(&self.id)
            && entry.applied < in_force
        {
            entry.applied = in_force;
            entry.report = report.to_owned();
            self.members.moved.notify_all();
        }
        loop {
            if state.stopped {
                return Progress::Stopped;
            }
            if !state.members.contains_key(&self.id) {
                return Progress::Unchanged;
            }
            if state.seqno > applied {
                return Progress::Later(state.seqno);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Progress::Unchanged;
            }
            let woken = self.members.moved.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
