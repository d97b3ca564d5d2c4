//! What the kernel does by itself, as it was told at the start, after a change.

use super::{Running, data, done};
use crate::{Case, cases, stage::Stage};

/// The cases of this part.
pub(super) const CASES: &[Case] = cases![
    a_program_is_not_executed_by_the_header_of_another,
    no_core_file_is_written_where_writing_was_taken,
];

/// A program like true(1) whose header names `loader` for its interpreter, beside the usual one.
fn lent(stage: &Stage) {
    let mut program = std::fs::read("/bin/true").expect("a program");
    let found = program.windows(4).position(|it| it == b"/ld-").expect("an interpreter");
    let start = program[..found].iter().rposition(|it| *it == 0).expect("a start") + 1;
    let end = found + program[found..].iter().position(|it| *it == 0).expect("an end");
    let usual = String::from_utf8(program[start..end].to_vec()).expect("UTF-8");
    // As long as the name of before.
    let own = format!("./{}loader", "/".repeat(end - start - "./loader".len()));
    program.splice(start..end, own.into_bytes());
    std::fs::write(stage.work().join("lent"), program).expect("write a program");
    stage.prepare(&format!("cp {usual} loader; cp lent copy; mv copy lent; chmod 755 lent loader"));
}

fn a_program_is_not_executed_by_the_header_of_another(stage: &Stage) {
    lent(stage);
    let running = Running::trying(stage, stage.call(), "./lent");
    assert_eq!(running.attempt(), "yes");
    for taken in ["--exec", "--file"] {
        let receipt = done(stage, &["revoke", taken, "loader"]);
        assert!(receipt.contains("complete after"), "{receipt}");
        assert_eq!(running.attempt(), "no", "{taken}");
        done(stage, &["grant", "--all"]);
        assert_eq!(running.attempt(), "yes", "{taken}");
    }
    running.stop();
    let record = stage.record();
    assert!(!record.denials_of("/loader").is_empty(), "{:?}", record.denials);
}

fn no_core_file_is_written_where_writing_was_taken(stage: &Stage) {
    data(stage);
    stage.prepare("mkdir cores");
    let script = "until [ -e stop ]; do sleep 0.02; done; ulimit -c unlimited; ulimit -Hc
        cd cores; sh -c 'kill -SEGV $$'; exit 7";
    let running = Running::start(stage, stage.call(), script);
    let receipt = done(stage, &["revoke", "--file", "cores", "--write"]);
    assert!(receipt.contains("complete after"), "{receipt}");
    let ran = running.stop();
    assert_eq!(ran.code(), 7, "{}", ran.err());
    // Where the machine has cores go elsewhere, there is only the limit to see.
    let left = std::fs::read_dir(stage.work().join("cores")).expect("the directory").count();
    assert_eq!((left, ran.out().trim()), (0, "0"));
}
