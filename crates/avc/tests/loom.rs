//! The cache's own source, run through every order of events that the memory model allows.
//!
//! The modules are compiled here a second time, over loom's atomics instead of the standard
//! library's (`src/sync.rs`), and with a hash that is the same in every run.
#![allow(dead_code, unreachable_pub, missing_docs)]

#[path = "../src/asked.rs"]
mod asked;
#[path = "../src/cache.rs"]
mod cache;
#[path = "../src/counters.rs"]
mod counters;
#[path = "../src/hint.rs"]
mod hint;
#[path = "../src/slot.rs"]
mod slot;
#[path = "../src/stats.rs"]
mod stats;
#[path = "../src/table.rs"]
mod table;
#[path = "../src/verdict.rs"]
mod verdict;

mod sync {
    pub(crate) use foldhash::quality::FixedState as Hasher;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

use asked::AccessOutcome;
use cache::Avc;
use flask::{
    AccessVector, Class, Decision, Explanation, LabelError, LabelRules, Question, SecurityServer,
    Seqno, Sid, Unreachable,
};
use hint::Hint;
use loom::{sync::Arc, thread};
use slot::{Key, Slot};
use stats::Stats;
use sync::{AtomicU32, Ordering};
use verdict::{Source, Verdict};

/// Every order with at most so many switches away from a thread that could go on.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A decision in which every field tells which one it is.
fn decision(number: u32) -> Decision {
    let vector = |part: u32| AccessVector(number * 10 + part);
    Decision {
        allowed: vector(1),
        auditallow: vector(2),
        auditdeny: vector(3),
        permissive: number % 2 == 1,
        seqno: Seqno(number),
    }
}

const KEYS: [Key; 2] = [Key { sids: 1 << 32 | 1, class: 1 }, Key { sids: 1 << 32 | 2, class: 2 }];

#[test]
fn a_reader_sees_an_entry_whole_or_not_at_all() {
    explore(2, || {
        let slot = Arc::new(Slot::default());
        let writers = KEYS.map(|key| {
            let slot = slot.clone();
            thread::spawn(move || slot.write(key, decision(u32::from(key.class))))
        });
        for key in KEYS {
            let answer = slot.answer(key, Seqno(0));
            assert!(answer.is_none_or(|d| d == decision(u32::from(key.class))), "{answer:?}");
        }
        let written = writers.map(|writer| writer.join().expect("no panic"));
        assert!(written.contains(&true), "one of two writers gets through");
    });
}

#[test]
fn an_entry_that_is_replaced_meanwhile_is_seen_old_new_or_not_at_all() {
    explore(2, || {
        let slot = Arc::new(Slot::default());
        slot.write(KEYS[0], decision(1));
        let writer = {
            let slot = slot.clone();
            thread::spawn(move || {
                slot.write(KEYS[1], decision(2));
                slot.write(KEYS[0], decision(3));
            })
        };
        let answer = slot.answer(KEYS[0], Seqno(0));
        assert!(answer.is_none_or(|d| d == decision(1) || d == decision(3)), "{answer:?}");
        writer.join().expect("no panic");
        assert_eq!(slot.answer(KEYS[0], Seqno(0)), Some(decision(3)));
        assert_eq!(slot.answer(KEYS[0], Seqno(4)), None);
    });
}

/// Grants permission n under policy n.
struct Server(Arc<AtomicU32>);

impl SecurityServer for Server {
    fn seqno(&self) -> Result<Seqno, Unreachable> {
        Ok(Seqno(self.0.load(Ordering::Acquire)))
    }
    fn compute_av(&self, _: Question) -> Result<Decision, Unreachable> {
        self.seqno().map(|seqno| decision(seqno.0))
    }
    fn compute_create(&self, q: Question, _: Option<&str>) -> Result<Sid, LabelError> {
        Ok(q.tsid)
    }
    fn compute_member(&self, q: Question) -> Result<Sid, LabelError> {
        Ok(q.tsid)
    }
    fn context_to_sid(&self, _: &str) -> Result<Sid, LabelError> {
        Err(LabelError::Unreachable)
    }
    fn sid_to_context(&self, sid: Sid) -> Result<String, LabelError> {
        Err(LabelError::UnknownSid(sid))
    }
    fn label_rules(&self) -> Result<LabelRules, Unreachable> {
        Ok(LabelRules::default())
    }
    fn explain(&self, _: Question, _: AccessVector) -> Result<Explanation, Unreachable> {
        Ok(Explanation::default())
    }
}

struct World {
    policy: Arc<AtomicU32>,
    avc: Arc<Avc>,
    hint: Arc<Hint>,
}

impl World {
    fn new() -> Self {
        let policy = Arc::new(AtomicU32::new(0));
        let server = std::sync::Arc::new(Server(policy.clone()));
        Self { policy, avc: Arc::new(Avc::with_capacity(server, 1)), hint: Arc::default() }
    }

    /// A verdict that is whole, whatever policy it follows from; returns that policy's number.
    fn ask(&self) -> u32 {
        let sid = Sid::from(flask::InitialSid::Kernel);
        let q = Question { ssid: sid, tsid: sid, tclass: Class::File };
        let verdict = self.avc.has_perm(q, AccessVector::ALL, &self.hint).expect("an answer");
        let want = decision(verdict.seqno.0);
        assert_eq!(verdict, Verdict::new(want, AccessVector::ALL, verdict.source));
        verdict.seqno.0
    }

    /// A new policy is in force, and every cache knows.
    fn change(&self) {
        let seqno = self.policy.fetch_add(1, Ordering::AcqRel) + 1;
        self.avc.reset(Seqno(seqno));
    }
}

impl Clone for World {
    fn clone(&self) -> Self {
        let (policy, avc, hint) = (self.policy.clone(), self.avc.clone(), self.hint.clone());
        Self { policy, avc, hint }
    }
}

#[test]
fn a_query_that_begins_after_a_reset_is_never_answered_from_the_older_policy() {
    // One switch fewer than elsewhere: three queries have too many orders.
    explore(1, || {
        let world = World::new();
        let asker = {
            let world = world.clone();
            thread::spawn(move || world.ask())
        };
        world.change();
        assert_eq!(world.ask(), 1, "while another query may be under way");
        asker.join().expect("no panic");
        assert_eq!(world.ask(), 1, "after an answer that may have come late");
    });
}

#[test]
fn an_answer_that_comes_late_is_not_used_after_the_reset() {
    explore(2, || {
        let world = World::new();
        let asker = {
            let world = world.clone();
            thread::spawn(move || world.ask())
        };
        world.change();
        asker.join().expect("no panic");
        assert_eq!(world.ask(), 1);
    });
}

#[test]
fn answers_to_one_thread_never_go_back_to_an_older_policy() {
    explore(2, || {
        let world = World::new();
        world.ask();
        let changer = {
            let world = world.clone();
            thread::spawn(move || world.change())
        };
        let (first, second) = (world.ask(), world.ask());
        assert!(first <= second, "policy {first}, then {second}");
        changer.join().expect("no panic");
        assert_eq!(world.ask(), 1);
    });
}
