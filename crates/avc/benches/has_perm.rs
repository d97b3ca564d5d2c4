//! What a decision costs: at the hint, in the cache, from a server that answers at once, after a
//! reset; with two threads; with 10 to 1,000,000 entries.

use avc::{Avc, Hint};
use divan::{Bencher, black_box, counter::ItemsCount};
use flask::{
    AccessVector, Class, Decision, Explanation, LabelError, LabelRules, Question, SecurityServer,
    Seqno, Sid, Unreachable,
};
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
};

fn main() {
    divan::main();
}

/// Decisions that one sample makes, so that the clock does not count.
const BATCH: usize = 4096;

const ENTRIES: [usize; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// Grants everything at once: the papers' trivial security server.
#[derive(Default)]
struct Trivial(AtomicU32);

impl SecurityServer for Trivial {
    fn seqno(&self) -> Result<Seqno, Unreachable> {
        Ok(Seqno(self.0.load(Ordering::Acquire)))
    }
    fn compute_av(&self, _: Question) -> Result<Decision, Unreachable> {
        Ok(Decision { allowed: AccessVector::ALL, seqno: self.seqno()?, ..Decision::DENY_ALL })
    }
    fn compute_create(&self, q: Question, _: Option<&str>) -> Result<Sid, LabelError> {
        Ok(q.tsid)
    }
    fn compute_member(&self, q: Question) -> Result<Sid, LabelError> {
        Ok(q.tsid)
    }
    fn context_to_sid(&self, context: &str) -> Result<Sid, LabelError> {
        Err(LabelError::InvalidContext(context.to_owned()))
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

fn question(number: usize) -> Question {
    let sid = |number: usize| Sid::new(number as u32 + 1).expect("not 0");
    Question { ssid: sid(number / 1000), tsid: sid(number % 1000), tclass: Class::File }
}

/// A cache that holds the answers to the first `entries` questions.
fn filled(entries: usize) -> Avc {
    let avc = Avc::with_capacity(Arc::new(Trivial::default()), entries);
    for number in 0..entries {
        decide(&avc, question(number), &Hint::default());
    }
    avc
}

#[inline]
fn decide(avc: &Avc, question: Question, hint: &Hint) {
    let verdict = avc.has_perm(black_box(question), black_box(AccessVector(2)), black_box(hint));
    black_box(verdict.is_ok_and(avc::Verdict::granted));
}

/// What is left of the next two without the cache: to be taken off them.
#[divan::bench]
fn the_loop_alone(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(BATCH)).with_inputs(Hint::default).bench_refs(|hint| {
        for _ in 0..BATCH {
            let (question, requested) = (black_box(question(50)), black_box(AccessVector(2)));
            black_box(hint as &Hint);
            black_box(question.ssid.get() > requested.0);
        }
    });
}

/// One object, asked about again and again.
#[divan::bench(threads = [1, 2])]
fn at_the_hint(bencher: Bencher<'_, '_>) {
    let avc = filled(100);
    bencher.counter(ItemsCount::new(BATCH)).with_inputs(Hint::default).bench_refs(|hint| {
        for _ in 0..BATCH {
            decide(&avc, question(50), hint);
        }
    });
}

/// The same as an object manager asks, which has to know what to do without an answer, too.
#[divan::bench]
fn asked_at_the_hint(bencher: Bencher<'_, '_>) {
    let avc = filled(100);
    bencher.counter(ItemsCount::new(BATCH)).with_inputs(Hint::default).bench_refs(|hint| {
        for _ in 0..BATCH {
            let asked =
                avc.ask(black_box(question(50)), black_box(AccessVector(2)), black_box(hint));
            black_box(asked.granted());
        }
    });
}

/// A cache, and every question that it can answer once, in no order.
struct Mix {
    avc: Avc,
    questions: Vec<Question>,
    next: AtomicUsize,
}

impl Mix {
    fn new(entries: usize) -> Self {
        let mut random = 0x9E37_79B9_u64;
        let mut draw = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        let mut numbers: Vec<usize> =
            (0..entries.next_multiple_of(BATCH)).map(|n| n % entries).collect();
        for end in (1..numbers.len()).rev() {
            numbers.swap(end, draw(end + 1));
        }
        let questions = numbers.into_iter().map(question).collect();
        Self { avc: filled(entries), questions, next: AtomicUsize::new(0) }
    }

    /// Asks the next `BATCH` of them, with a hint that points elsewhere.
    fn ask(&self) {
        let hint = Hint::default();
        for question in &self.questions[self.batch()] {
            decide(&self.avc, *question, &hint);
        }
    }

    fn batch(&self) -> Range<usize> {
        let start = self.next.fetch_add(BATCH, Ordering::Relaxed) % self.questions.len();
        start..start + BATCH
    }
}

#[divan::bench]
fn in_the_cache(bencher: Bencher<'_, '_>) {
    growth(bencher, 1_000);
}

#[divan::bench(threads = [1, 2])]
fn in_the_cache_by_threads(bencher: Bencher<'_, '_>) {
    growth(bencher, 1_000);
}

/// Every question equally often: beyond the processor's caches, a miss in them is part of the cost.
#[divan::bench(args = ENTRIES)]
fn growth(bencher: Bencher<'_, '_>, entries: usize) {
    let mix = Mix::new(entries);
    bencher.counter(ItemsCount::new(BATCH)).bench(|| mix.ask());
}

/// One load each from as many bytes as so many entries fill: what memory alone costs.
#[divan::bench(args = ENTRIES)]
fn growth_of_memory_alone(bencher: Bencher<'_, '_>, entries: usize) {
    let mix = Mix::new(entries);
    let memory = vec![1_u64; (entries * 2).next_power_of_two() * 4];
    bencher.counter(ItemsCount::new(BATCH)).bench(|| {
        mix.questions[mix.batch()]
            .iter()
            .map(|q| {
                let mixed = u64::from(q.ssid.get() * 1000 + q.tsid.get()) * 0x9E37_79B9_7F4A_7C15;
                memory[(mixed >> 32) as usize % memory.len()]
            })
            .fold(0, u64::wrapping_add)
    });
}

/// The same with hints, as objects keep them: one each.
#[divan::bench(args = ENTRIES)]
fn growth_with_hints(bencher: Bencher<'_, '_>, entries: usize) {
    let mix = Mix::new(entries);
    let objects: Vec<(Question, Hint)> =
        mix.questions.iter().map(|question| (*question, Hint::default())).collect();
    bencher.counter(ItemsCount::new(BATCH)).bench(|| {
        for (question, hint) in &objects[mix.batch()] {
            decide(&mix.avc, *question, hint);
        }
    });
}

/// A working set of 1,000 questions in a cache that holds so many entries.
#[divan::bench(args = ENTRIES)]
fn growth_around_a_working_set(bencher: Bencher<'_, '_>, entries: usize) {
    let mut mix = Mix::new(entries);
    mix.questions = (0..BATCH).map(|n| mix.questions[n * 7 % 1000 % mix.questions.len()]).collect();
    bencher.counter(ItemsCount::new(BATCH)).bench(|| mix.ask());
}

/// The answer is not there, and the security server gives it at once.
#[divan::bench]
fn from_the_trivial_server(bencher: Bencher<'_, '_>) {
    let server = Arc::new(Trivial::default());
    let avc = Avc::new(server.clone());
    let hint = Hint::default();
    bencher.counter(ItemsCount::new(BATCH)).bench(|| {
        for number in 0..BATCH {
            if number % 1024 == 0 {
                avc.reset(Seqno(server.0.fetch_add(1, Ordering::AcqRel) + 1));
            }
            decide(&avc, question(number), &hint);
        }
    });
}

/// All of 1,000,000 entries become unusable.
#[divan::bench]
fn reset(bencher: Bencher<'_, '_>) {
    let avc = filled(1_000_000);
    let seqno = AtomicU32::new(1);
    bencher.counter(ItemsCount::new(BATCH)).bench(|| {
        for _ in 0..BATCH {
            avc.reset(black_box(Seqno(seqno.fetch_add(1, Ordering::Relaxed))));
        }
    });
}
