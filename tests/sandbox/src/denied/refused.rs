//! Programs whose every attempt is refused.

use crate::{
    dewar::Call,
    kernel::with_say,
    process::{Ran, run},
    record::Record,
    stage::Stage,
};

/// What refusals look like to the program: no rights, no such thing, or (a move between labels)
/// another file system.
pub(super) const REFUSALS: [&str; 6] = ["EACCES", "EPERM", "ENOENT", "EROFS", "ESRCH", "EXDEV"];

/// Runs a Python program whose every attempt, one a line, must be refused.
pub(super) fn refused(stage: &Stage, program: &str) -> (Ran, Record) {
    refused_under(stage, None, program)
}

/// The same under a profile that is not the default.
pub(super) fn refused_under(stage: &Stage, profile: Option<&str>, program: &str) -> (Ran, Record) {
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
    pub(super) fn explains(&self, object: &str) {
        let found = self.denials_of(object);
        let all: Vec<_> = self.denials.iter().map(crate::record::Denial::text).collect();
        assert!(!found.is_empty(), "no denial of {object}; there are:\n{}", all.join("\n"));
        for denial in found {
            assert!(!denial.missing.is_empty() && !denial.reason.is_empty(), "{denial:?}");
        }
    }
}
