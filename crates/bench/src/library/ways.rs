//! Asking in this process: the cache alone, and the crate `object-manager`.

use super::{OBJECTS, Place};
use crate::interleaved::{Batch, Stopwatch};
use object_manager::{About, AccessVector, Hint, Manager, Question};
use std::{fmt::Write as _, hint::black_box, path::Path, rc::Rc};

/// A way to ask, and its batches; or why there is none.
pub(super) struct Way {
    pub(super) name: String,
    pub(super) jobs: Result<Vec<(Place, Batch<'static>)>, String>,
}

/// The object that is asked about again and again.
const ONE: usize = 50;

/// `get`, the first permission of the class.
const GET: AccessVector = AccessVector(1);

/// A policy that grants one subject `get` on every object.
pub(super) fn policy() -> String {
    let mut text = "(class entry (get put)) (classorder (entry)) (user u) (role r) (userrole u r)
        (type subject_t) (roletype r subject_t) (typeattribute object)
        (allow subject_t object (entry (get)))\n"
        .to_owned();
    for n in 0..OBJECTS {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "(type o{n}_t) (roletype object_r o{n}_t) (typeattributeset object (o{n}_t))"
        );
    }
    text
}

/// A manager, a question about each object, and where the last answer lies.
struct Stage {
    manager: Manager,
    questions: Vec<Question>,
    hint: Hint,
}

impl Stage {
    /// With a cache for so many answers.
    fn open(policy: &Path, entries: usize) -> Result<Self, String> {
        let builder = Manager::builder("bench").policy_file(policy).class("entry", ["get", "put"]);
        let manager = builder.entries(entries).open().map_err(|error| error.to_string())?;
        let tclass = manager.class("entry").map_err(|error| error.to_string())?;
        let sid = |context: &str| manager.sid(context).map_err(|error| error.to_string());
        let ssid = sid("u:r:subject_t")?;
        let question = |n| {
            let tsid = sid(&format!("u:object_r:o{n}_t"))?;
            Ok(Question { ssid, tsid, tclass })
        };
        let questions = (0..OBJECTS).map(question).collect::<Result<_, String>>()?;
        Ok(Self { manager, questions, hint: Hint::default() })
    }

    /// The object of that turn: neighbours in time are none in memory.
    fn question(&self, turn: u32) -> Question {
        self.questions[turn as usize * 7 % OBJECTS]
    }
}

/// Asks so many times, in a loop that is compiled around the question.
macro_rules! batch {
    ($stage:ident, $turn:ident => $question:expr, $ask:expr) => {{
        let stage = Rc::clone(&$stage);
        Box::new(move |times: u32| {
            let (begin, mut granted) = (Stopwatch::start(), 0);
            for $turn in 0..times {
                let $stage = &*stage;
                let question = black_box($question);
                granted += u32::from($ask($stage, question));
            }
            let took = begin.elapsed();
            if black_box(granted) == times { Ok(took) } else { Err("it was denied".to_owned()) }
        }) as Batch<'static>
    }};
}

#[inline]
fn nothing(stage: &Stage, question: Question) -> bool {
    black_box(&stage.hint);
    black_box(question.ssid.get() > GET.0 || question.tsid.get() > 0)
}

#[inline]
fn avc_alone(stage: &Stage, question: Question) -> bool {
    let verdict = stage.manager.has_perm(question, black_box(GET), black_box(&stage.hint));
    verdict.is_ok_and(object_manager::Verdict::granted)
}

#[inline]
fn check(stage: &Stage, question: Question) -> bool {
    let hint = black_box(&stage.hint);
    stage.manager.check(question, black_box(GET), hint, About::default).is_ok()
}

/// What can be asked without leaving this process.
pub(super) fn in_this_process(policy: &Path) -> Result<Vec<Way>, String> {
    let full = Rc::new(Stage::open(policy, OBJECTS)?);
    // So small that what is asked in turn is never found in it.
    let small = Rc::new(Stage::open(policy, 1)?);
    macro_rules! way {
        ($name:literal, $ask:ident) => {
            Way {
                name: $name.to_owned(),
                jobs: Ok(vec![
                    (Place::Loop, batch!(full, _turn => full.questions[ONE], nothing)),
                    (Place::Hint, batch!(full, _turn => full.questions[ONE], $ask)),
                    (Place::Cache, batch!(full, turn => full.question(turn), $ask)),
                    (Place::Server, batch!(small, turn => small.question(turn), $ask)),
                ]),
            }
        };
    }
    Ok(vec![way!("the cache alone", avc_alone), way!("Rust: check", check)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_where_the_table_says_that_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("check.cil");
        std::fs::write(&file, policy()).unwrap();
        let stage = Stage::open(&file, OBJECTS).unwrap();
        let ask = |stage: &Stage, question| assert!(check(stage, question));
        (0..4 * OBJECTS as u32).for_each(|turn| ask(&stage, stage.question(turn)));
        let warm = stage.manager.stats();
        (0..1000).for_each(|_| ask(&stage, stage.questions[ONE]));
        assert!(stage.manager.stats().hint - warm.hint >= 999, "at the hint");
        let before = stage.manager.stats();
        (0..1000).for_each(|turn| ask(&stage, stage.question(turn)));
        let after = stage.manager.stats();
        assert!(after.cache - before.cache >= 950, "in the cache: {before:?} {after:?}");
        let small = Stage::open(&file, 1).unwrap();
        (0..4000).for_each(|turn| ask(&small, small.question(turn)));
        assert!(small.manager.stats().server >= 3900, "{:?}", small.manager.stats());
    }
}
