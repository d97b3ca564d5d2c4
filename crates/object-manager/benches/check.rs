//! What a check costs a program: at the hint of its object, and in the cache. Beside each, the
//! cache alone (`avc`), and the loop that asks, to be taken off both.

use divan::{Bencher, black_box, counter::ItemsCount};
use object_manager::{About, AccessVector, Hint, Manager, Question};

fn main() {
    divan::main();
}

/// Checks that one sample makes, so that the clock does not count.
const BATCH: usize = 4096;

/// Objects that are asked about in turn.
const OBJECTS: usize = 1000;

const POLICY: &str = "
    (class entry (get put)) (classorder (entry)) (user u) (role r) (userrole u r)
    (type subject_t) (roletype r subject_t) (typeattribute object)
    (allow subject_t object (entry (get)))
";

/// A manager, and a question about each object.
fn manager() -> (Manager, Vec<Question>) {
    let types = (0..OBJECTS).map(|n| {
        format!("(type o{n}_t) (roletype object_r o{n}_t) (typeattributeset object (o{n}_t))")
    });
    let policy = format!("{POLICY}{}", types.collect::<String>());
    let builder = Manager::builder("bench").policy_text("bench.cil", &policy);
    let manager = builder.class("entry", ["get", "put"]).entries(OBJECTS).open().expect("a policy");
    let tclass = manager.class("entry").expect("its class");
    let ssid = manager.sid("u:r:subject_t").expect("a context");
    let question = |n| {
        let tsid = manager.sid(&format!("u:object_r:o{n}_t")).expect("a context");
        Question { ssid, tsid, tclass }
    };
    let questions = (0..OBJECTS).map(question).collect();
    (manager, questions)
}

const GET: AccessVector = AccessVector(1);

#[inline]
fn check(manager: &Manager, question: Question, hint: &Hint) {
    let checked =
        manager.check(black_box(question), black_box(GET), black_box(hint), About::default);
    black_box(checked.is_ok());
}

#[inline]
fn avc_alone(manager: &Manager, question: Question, hint: &Hint) {
    let verdict = manager.has_perm(black_box(question), black_box(GET), black_box(hint));
    black_box(verdict.is_ok_and(|verdict| verdict.granted()));
}

#[divan::bench]
fn the_loop_alone(bencher: Bencher<'_, '_>) {
    let (_, questions) = manager();
    bencher.counter(ItemsCount::new(BATCH)).with_inputs(Hint::default).bench_refs(|hint| {
        for _ in 0..BATCH {
            let (question, requested) = (black_box(questions[50]), black_box(GET));
            black_box(hint as &Hint);
            black_box(question.ssid.get() > requested.0);
        }
    });
}

/// The same object again and again.
macro_rules! at_the_hint {
    ($name:ident, $ask:ident) => {
        #[divan::bench]
        fn $name(bencher: Bencher<'_, '_>) {
            let (manager, questions) = manager();
            bencher.counter(ItemsCount::new(BATCH)).with_inputs(Hint::default).bench_refs(|hint| {
                for _ in 0..BATCH {
                    $ask(&manager, questions[50], hint);
                }
            });
        }
    };
}

/// One hint for all objects, which is wrong each time.
macro_rules! in_the_cache {
    ($name:ident, $ask:ident) => {
        #[divan::bench]
        fn $name(bencher: Bencher<'_, '_>) {
            let (manager, questions) = manager();
            bencher.counter(ItemsCount::new(BATCH)).with_inputs(Hint::default).bench_refs(|hint| {
                for n in 0..BATCH {
                    $ask(&manager, questions[n * 7 % OBJECTS], hint);
                }
            });
        }
    };
}

at_the_hint!(check_at_the_hint, check);
at_the_hint!(avc_at_the_hint, avc_alone);
in_the_cache!(check_in_the_cache, check);
in_the_cache!(avc_in_the_cache, avc_alone);
