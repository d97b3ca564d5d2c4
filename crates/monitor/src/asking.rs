//! Denials that are put to somebody outside before the program learns of them.
//!
//! ```text
//!  call ─▶ denied ─▶ question ─▶ who asked for it outside ─▶ verdict ─▶ decided again, or denied
//!                       ▲ the same again joins; a signal for the caller withdraws
//! ```
//!
//! While a call waits, it is on no way through the gate: policy may change, and everything else is
//! decided. Whatever fails denies.

use audit::{
    Access, Record,
    attempt::{self, Key, key},
};
use flask::{AccessVector, Question as AccessQuestion, Sid};
use mediation::call::{Asker, CallResult};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};
use supervisor::Notification;

/// Questions that can be open at once; what is denied beyond is denied unasked.
const MOST_OPEN: usize = 32;
/// How often one call can be denied something else each time.
const MOST_ROUNDS: usize = 16;
/// Calls that can wait for one answer.
const MOST_WAITING: usize = 32;
/// Kinds of denials that are known to be none to ask about; beyond, nothing is asked any more.
const MOST_SETTLED: usize = 10_000;

/// Who is asked.
pub struct Asking {
    /// Passes a question on; whether it has: else it is called again, unless the call is withdrawn
    /// meanwhile. Called by the thread that decides the call, which waits then. It must not wait
    /// for a change of policy, which waits for the call.
    pub put: Box<dyn Fn(Question) -> bool + Send + Sync>,
    /// Nobody waits for the answer any more.
    pub withdraw: Box<dyn Fn(u64) + Send + Sync>,
    /// How long a call waits at most; then it is denied, whatever the other side does.
    pub patience: Duration,
}

/// A denial that waits for a verdict.
pub struct Question {
    /// Its number in this run.
    pub id: u64,
    /// The call: the same where one call asks several questions.
    pub call: u64,
    /// The denial, as it will be recorded if it stays one.
    pub record: Record,
}

/// What becomes of a denied call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It is denied, and so is the same from now on, unasked.
    Denied,
    /// It is denied this time.
    NotNow,
    /// It passes this once.
    Once,
    /// Policy was changed: the call is decided anew.
    Anew,
}

/// Decides calls, and asks nobody but the policy.
pub(crate) trait ByPolicy {
    /// Decides one.
    fn decide_by_policy(&self, call: &Notification) -> CallResult;

    /// Does something with a call and its subject, as both are now.
    fn with_asker<T>(
        &self,
        call: &Notification,
        with: impl FnOnce(Asker<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno>;

    /// Records what was denied to one, also where its caller has ended since.
    fn record(&self, call: &Notification, denied: &[Access]);
}

/// The open questions of a run.
pub(crate) struct Questions {
    asking: Asking,
    open: Mutex<Open>,
    /// What has passed once, whatever the policy: a process may hold what came of it.
    passed: Mutex<HashMap<AccessQuestion, AccessVector>>,
}

#[derive(Default)]
struct Open {
    last: u64,
    questions: HashMap<u64, (Key, Vec<Arc<Waiter>>)>,
    settled: HashSet<Key>,
    /// What is on record as denied, as the call has ended before there was an answer.
    interrupted: HashSet<Key>,
    /// Nobody answers any more.
    closed: bool,
}

struct Waiter {
    verdict: OnceLock<Verdict>,
    told: OwnedFd,
}

/// A place in the queue for an answer.
struct Ticket {
    id: u64,
    waiter: Arc<Waiter>,
    is_first: bool,
}

impl Questions {
    pub(crate) fn new(asking: Asking) -> Self {
        Self { asking, open: Mutex::default(), passed: Mutex::default() }
    }

    /// Decides a call, with questions where it is denied.
    pub(crate) fn decide(&self, policy: &impl ByPolicy, call: &Notification) -> CallResult {
        let mut once = Vec::new();
        for round in 0..MOST_ROUNDS {
            attempt::begin(std::mem::take(&mut once));
            let outcome = policy.decide_by_policy(call);
            let attempt = attempt::end();
            once = attempt.once;
            let denied = attempt.denied;
            // What was denied on the way to success, the program can do without.
            let asked = denied.last().filter(|_| outcome.is_err() && round + 1 < MOST_ROUNDS);
            let ask = |asker: Asker<'_>, access: &Access| {
                let answer = self.ask(asker, access);
                answer.inspect_err(|errno| self.record_interrupted(asker, *errno, &denied))
            };
            let answer = asked.map(|it| policy.with_asker(call, |asker| Ok(ask(asker, it))));
            let verdict = match answer {
                None => Ok((Verdict::NotNow, false)),
                Some(Ok(verdict)) => verdict,
                // Its caller has ended, and has no label any more.
                Some(Err(gone)) => {
                    policy.record(call, &denied);
                    return Err(gone);
                }
            };
            match (verdict, asked) {
                // A policy that is newer than the answer may have taken it: it is decided anew.
                (Ok((Verdict::Once, false)), Some(access)) => {
                    *self.passed().entry(access.question).or_default() |= access.requested;
                    once.push(key(access));
                }
                (Ok((Verdict::Once | Verdict::Anew, _)), _) => {}
                (Ok(_) | Err(Errno::NFILE), _) => {
                    policy.record(call, &denied);
                    return outcome;
                }
                (Err(interrupted), _) => return Err(interrupted),
            }
        }
        Err(Errno::ACCESS)
    }

    /// Records what was denied to a call that has ended before there was an answer: each kind once,
    /// as it may be made again and again.
    fn record_interrupted(&self, asker: Asker<'_>, errno: Errno, denied: &[Access]) {
        if matches!(errno, Errno::NFILE | supervisor::ANEW) {
            return;
        }
        let interrupted = &mut self.lock().interrupted;
        if interrupted.len() >= MOST_SETTLED {
            interrupted.clear();
        }
        let new = denied.iter().filter(|access| interrupted.insert(key(access)));
        let audit = &asker.state.records.audit;
        new.for_each(|access| audit.record(asker.caller, asker.number, access));
    }

    /// What has passed once of what is granted to nobody. It stays so for what is labelled `now`
    /// from here on.
    pub(crate) fn passed_once(&self, question: AccessQuestion, now: Sid) -> AccessVector {
        let mut passed = self.passed();
        let once = passed.get(&question).copied().unwrap_or_default();
        if once != AccessVector::NONE && now != question.tsid {
            *passed.entry(AccessQuestion { tsid: now, ..question }).or_default() |= once;
        }
        once
    }

    fn passed(&self) -> MutexGuard<'_, HashMap<AccessQuestion, AccessVector>> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The verdict, and whether policy has changed meanwhile.
    fn ask(&self, asker: Asker<'_>, access: &Access) -> Result<(Verdict, bool), Errno> {
        let Some(ticket) = self.join(&key(access)) else { return Ok((Verdict::NotNow, false)) };
        let until = Instant::now() + self.asking.patience;
        let puts = Cell::new(ticket.is_first);
        let wait = || {
            if puts.get() {
                let record = asker.state.records.audit.denial(asker.caller, asker.number, access);
                let (id, call) = (ticket.id, asker.caller.call.id);
                if !(self.asking.put)(Question { id, call, record }) {
                    return Err(Errno::INTR);
                }
                puts.set(false);
            }
            ticket.waiter.wait(until)
        };
        // Who it is, nobody can tell any more once the call has ended.
        let _ = asker.caller.identity();
        let waited = asker.wait(wait);
        self.leave(&ticket);
        waited
    }

    fn join(&self, key: &Key) -> Option<Ticket> {
        let mut open = self.lock();
        if open.closed || open.settled.contains(key) || open.settled.len() >= MOST_SETTLED {
            return None;
        }
        let told = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
        let waiter = Arc::new(Waiter { verdict: OnceLock::new(), told });
        let same = open.questions.iter_mut().find(|(_, (other, _))| other == key);
        if let Some((id, (_, waiters))) = same {
            if waiters.len() >= MOST_WAITING {
                return None;
            }
            waiters.push(Arc::clone(&waiter));
            return Some(Ticket { id: *id, waiter, is_first: false });
        }
        if open.questions.len() >= MOST_OPEN {
            return None;
        }
        open.last += 1;
        let id = open.last;
        open.questions.insert(id, (key.clone(), vec![Arc::clone(&waiter)]));
        Some(Ticket { id, waiter, is_first: true })
    }

    /// Whoever waited does so no longer.
    fn leave(&self, ticket: &Ticket) {
        let mut open = self.lock();
        let Some((_, waiters)) = open.questions.get_mut(&ticket.id) else { return };
        waiters.retain(|waiter| !Arc::ptr_eq(waiter, &ticket.waiter));
        if waiters.is_empty() {
            open.questions.remove(&ticket.id);
            drop(open);
            (self.asking.withdraw)(ticket.id);
        }
    }

    /// Tells everybody who waits for the answer to question `id`.
    pub(crate) fn answer(&self, id: u64, verdict: Verdict) {
        let mut open = self.lock();
        let Some((key, waiters)) = open.questions.remove(&id) else { return };
        if verdict == Verdict::Denied {
            open.settled.insert(key);
        }
        waiters.iter().for_each(|waiter| waiter.tell(verdict));
    }

    /// Nobody answers any more: what is open is denied, and so is what comes.
    pub(crate) fn close(&self) {
        let mut open = self.lock();
        open.closed = true;
        for (_, (_, waiters)) in open.questions.drain() {
            waiters.iter().for_each(|waiter| waiter.tell(Verdict::NotNow));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    fn tell(&self, verdict: Verdict) {
        // Told once; the descriptor takes eight bytes at any time.
        let _ = self.verdict.set(verdict);
        let _ = rustix::io::write(&self.told, &1_u64.to_ne_bytes());
    }

    fn wait(&self, until: Instant) -> Result<Verdict, Errno> {
        loop {
            if let Some(verdict) = self.verdict.get() {
                return Ok(*verdict);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Verdict::NotNow);
            }
            let left = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
            poll(&mut [PollFd::new(&self.told, PollFlags::IN)], Some(&left))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flask::{Class, InitialSid, Question as Asked, perm};
    use std::sync::atomic::{AtomicU64, Ordering};

    fn key(object: &str) -> Key {
        let sid = InitialSid::File.into();
        let asked = Asked { ssid: sid, tsid: sid, tclass: Class::File };
        (asked, perm::file::READ, object.to_owned())
    }

    fn questions(withdrawn: &Arc<AtomicU64>) -> Questions {
        let withdrawn = Arc::clone(withdrawn);
        Questions::new(Asking {
            put: Box::new(|_| true),
            withdraw: Box::new(move |id| withdrawn.store(id, Ordering::Relaxed)),
            patience: Duration::from_secs(9),
        })
    }

    #[test]
    fn the_same_question_is_put_once_and_its_answer_reaches_everybody() {
        let questions = questions(&Arc::default());
        let first = questions.join(&key("/a")).unwrap();
        let second = questions.join(&key("/a")).unwrap();
        assert!(first.is_first && !second.is_first && first.id == second.id);
        assert_ne!(questions.join(&key("/b")).unwrap().id, first.id);
        questions.answer(first.id, Verdict::Denied);
        let until = Instant::now() + Duration::from_secs(9);
        for ticket in [first, second] {
            assert_eq!(ticket.waiter.wait(until), Ok(Verdict::Denied));
        }
        assert!(questions.join(&key("/a")).is_none(), "a no holds");
    }

    #[test]
    fn a_question_that_nobody_waits_for_is_withdrawn() {
        let withdrawn = Arc::default();
        let questions = questions(&withdrawn);
        let first = questions.join(&key("/a")).unwrap();
        let second = questions.join(&key("/a")).unwrap();
        questions.leave(&first);
        assert_eq!(withdrawn.load(Ordering::Relaxed), 0);
        questions.leave(&second);
        assert_eq!(withdrawn.load(Ordering::Relaxed), first.id);
        assert!(questions.join(&key("/a")).unwrap().is_first);
    }

    /// A policy that denies all, and whose callers end before they can be asked for.
    #[derive(Default)]
    struct Gone(Cell<usize>);

    impl ByPolicy for Gone {
        fn decide_by_policy(&self, _: &Notification) -> CallResult {
            let (question, requested, object) = key("/a");
            let (verdict, granted, quiet) = (None, false, false);
            let access = Access { question, requested, verdict, granted, quiet, object };
            assert!(attempt::defer(access).is_none());
            Err(Errno::ACCESS)
        }

        fn with_asker<T>(
            &self,
            _: &Notification,
            _: impl FnOnce(Asker<'_>) -> Result<T, Errno>,
        ) -> Result<T, Errno> {
            Err(Errno::SRCH)
        }

        fn record(&self, _: &Notification, denied: &[Access]) {
            self.0.set(self.0.get() + denied.len());
        }
    }

    #[test]
    fn a_denial_is_recorded_also_where_its_caller_has_ended() {
        let (policy, call) = (Gone::default(), Notification { id: 1, tid: 1, nr: 0, args: [0; 6] });
        assert_eq!(questions(&Arc::default()).decide(&policy, &call).err(), Some(Errno::SRCH));
        assert_eq!(policy.0.get(), 1);
    }

    #[test]
    fn a_flood_of_questions_is_denied_and_so_is_everything_without_an_answerer() {
        let questions = questions(&Arc::default());
        let tickets: Vec<_> =
            (0..MOST_OPEN).map(|n| questions.join(&key(&n.to_string())).unwrap()).collect();
        assert!(questions.join(&key("one more")).is_none());
        questions.close();
        let until = Instant::now() + Duration::from_secs(9);
        for ticket in tickets {
            assert_eq!(ticket.waiter.wait(until), Ok(Verdict::NotNow));
        }
        assert!(questions.join(&key("/a")).is_none());
    }
}
