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
    /// Kill it.
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
        let begin = Instant::now();
        let mut state = self.lock();
        state.seqno = state.seqno.max(seqno);
        self.moved.notify_all();
        let mut waiting: Vec<(u64, Acknowledged)> = state.members.iter().map(pending).collect();
        let mut done = Vec::new();
        loop {
            let mut events = Vec::new();
            waiting.retain_mut(|(id, member)| {
                member.after = begin.elapsed();
                let settled = settle(&mut state, *id, seqno, patience, member, &mut events);
                if settled {
                    done.push(member.clone());
                }
                !settled
            });
            if events.is_empty() && waiting.is_empty() {
                return done;
            }
            if !events.is_empty() {
                drop(state);
                events.iter().for_each(|(name, stage)| late(name, *stage));
                state = self.lock();
                continue;
            }
            let woken = self.moved.wait_timeout(state, TICK);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pending((id, entry): (&u64, &Entry)) -> (u64, Acknowledged) {
    let member = Acknowledged {
        name: entry.name.clone(),
        outcome: MemberOutcome::Unreached,
        after: Duration::ZERO,
        stage: None,
        report: Vec::new(),
    };
    (*id, member)
}

/// Whether it is known how it went with a member; if not, what is to be done about it goes into
/// `events`.
fn settle(
    state: &mut State,
    id: u64,
    seqno: Seqno,
    patience: Patience,
    member: &mut Acknowledged,
    events: &mut Vec<(String, Stage)>,
) -> bool {
    let killed = member.stage == Some(Stage::Kill);
    let gone = if killed { MemberOutcome::Killed } else { MemberOutcome::Gone };
    let Some(entry) = state.members.get(&id) else {
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
        state.members.remove(&id);
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
    match next {
        Some((stage, after)) if member.after >= after => {
            member.stage = Some(stage);
            events.push((member.name.clone(), stage));
        }
        // Killed, and yet it lives: it waits for a device.
        None => return member.after >= patience.kill * 2,
        Some(_) => {}
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
        if let Some(entry) = state.members.get_mut(&self.id)
            && entry.applied < applied
        {
            entry.applied = applied;
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
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    const SOON: Patience = Patience {
        report: Duration::from_millis(20),
        freeze: Duration::from_millis(60),
        kill: Duration::from_millis(120),
    };

    fn stages(
        members: &Arc<Members>,
        seqno: u32,
        act: impl Fn(Stage),
    ) -> (Vec<Acknowledged>, Vec<Stage>) {
        let mut seen = Vec::new();
        let done = members.complete(Seqno(seqno), SOON, |_, stage| {
            act(stage);
            seen.push(stage);
        });
        (done, seen)
    }

    #[test]
    fn a_change_is_complete_when_every_member_has_said_so() {
        let members = Members::new(Seqno(1));
        thread::scope(|scope| {
            for n in 0..5 {
                let member = members.join(format!("m{n}"), Seqno(1), || true);
                scope.spawn(move || {
                    let told = member.next(Seqno(1), b"", Duration::from_secs(10));
                    assert_eq!(told, Progress::Later(Seqno(2)));
                    assert_eq!(member.next(Seqno(2), b"ok", Duration::ZERO), Progress::Unchanged);
                    assert_eq!(
                        member.next(Seqno(2), b"", Duration::from_secs(10)),
                        Progress::Stopped
                    );
                });
            }
            let (done, seen) = stages(&members, 2, |_| {});
            assert_eq!((done.len(), seen.len()), (5, 0));
            assert!(done.iter().all(|m| m.outcome == MemberOutcome::Applied && m.report == b"ok"));
            members.stop();
        });
        assert_eq!(members.count(), 0);
    }

    #[test]
    fn one_that_has_died_is_not_waited_for() {
        let members = Members::new(Seqno(1));
        let _dead = members.join("dead".into(), Seqno(1), || false);
        let (done, seen) = stages(&members, 2, |_| {});
        assert_eq!((done[0].outcome, seen.len()), (MemberOutcome::Gone, 0));
    }

    #[test]
    fn one_that_does_not_answer_is_reported_then_frozen_then_killed() {
        let members = Members::new(Seqno(1));
        let lives = Arc::new(AtomicBool::new(true));
        let seen_by = Arc::clone(&lives);
        let _late = members.join("late".into(), Seqno(1), move || seen_by.load(Ordering::Relaxed));
        let (done, seen) =
            stages(&members, 2, |stage| lives.store(stage != Stage::Kill, Ordering::Relaxed));
        assert_eq!(seen, [Stage::Report, Stage::Freeze, Stage::Kill]);
        assert_eq!(done[0].outcome, MemberOutcome::Killed);
    }

    #[test]
    fn one_that_cannot_be_killed_leaves_the_change_incomplete() {
        let members = Members::new(Seqno(1));
        let _stuck = members.join("stuck".into(), Seqno(1), || true);
        assert_eq!(stages(&members, 2, |_| {}).0[0].outcome, MemberOutcome::Unreached);
    }

    #[test]
    fn one_that_answers_late_goes_on() {
        let members = Members::new(Seqno(1));
        let late = members.join("late".into(), Seqno(1), || true);
        let (done, seen) = stages(&members, 2, |stage| {
            if stage == Stage::Freeze {
                let _ = late.next(Seqno(2), b"", Duration::ZERO);
            }
        });
        assert_eq!(seen, [Stage::Report, Stage::Freeze, Stage::Thaw]);
        assert_eq!(done[0].outcome, MemberOutcome::Applied);
    }
}
