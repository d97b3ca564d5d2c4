//! What policy refuses: it fails, nothing changes, and the record says what and why.

mod execs;
mod files;
pub(crate) mod inside;
mod processes;
mod refusals;
mod sockets;
mod view;

use crate::{
    dewar::Call,
    kernel::with_say,
    process::{Ran, run},
    record::Record,
    stage::Stage,
};

/// The cases of this part.
pub(crate) const CASES: &[&[crate::Case]] = &[
    execs::CASES,
    files::CASES,
    inside::CASES,
    processes::CASES,
    refusals::CASES,
    sockets::CASES,
    view::CASES,
];

/// What refusals look like to the program: no rights, no such thing, or (a move between labels)
/// another file system.
const REFUSALS: [&str; 6] = ["EACCES", "EPERM", "ENOENT", "EROFS", "ESRCH", "EXDEV"];

/// Runs a Python program whose every attempt, one a line, must be refused.
fn refused(stage: &Stage, program: &str) -> (Ran, Record) {
    refused_under(stage, None, program)
}

/// The same under a profile that is not the default.
fn refused_under(stage: &Stage, profile: Option<&str>, program: &str) -> (Ran, Record) {
    let words = ["python3".into(), "-c".into(), with_say(program).into()];
    let ran = run(stage.dewar(Call { profile, ..stage.call() }, &words), b"");
    assert!(ran.status.success(), "the program failed: {}{}", ran.out(), ran.err());
    for line in ran.out().lines() {
        let answer = line.rsplit(' ').next().unwrap_or("");
        assert!(REFUSALS.contains(&answer), "not refused: {line}\n{}", ran.err());
    }
    assert_ne!(ran.out(), "", "nothing was attempted");
    (ran, stage.record())
}

impl Record {
    /// A denial whose object ends so, and which is explained.
    fn explains(&self, object: &str) {
        let found = self.denials_of(object);
        let all: Vec<_> = self.denials.iter().map(crate::record::Denial::text).collect();
        assert!(!found.is_empty(), "no denial of {object}; there are:\n{}", all.join("\n"));
        for denial in found {
            assert!(!denial.missing.is_empty() && !denial.reason.is_empty(), "{denial:?}");
        }
    }
}
