//! Threads that go elsewhere than they are set to while calls are made in their place.

use crate::{
    Case, cases,
    stage::{Ran, Stage, check},
};
use serde_json::json;

pub(crate) const CASES: &[Case] = cases![
    a_restartable_sequence_leads_nobody_from_a_call_in_its_place,
    a_restartable_sequence_leads_nobody_from_lent_code,
    whoever_is_led_to_calls_of_its_own_makes_none,
    whoever_is_led_from_lent_code_to_calls_of_its_own_makes_none,
    a_restartable_sequence_that_was_interrupted_begins_anew,
    whoever_has_calls_handed_to_itself_makes_none_in_their_place,
];

const MOVED: &str = include_str!("moved.c");

/// The section names nearly all of the program's memory, whatever it is set to.
fn a_restartable_sequence_leads_nobody_from_a_call_in_its_place(stage: &Stage) {
    let ran = waits(stage, ("moved", MOVED), "1");
    check(&ran, &json!({ "built": 0, "status": 0, "readable": 0 }));
    assert!(ran.is_complete(), "{}", ran.receipt);
    assert_eq!(ran.actions("descriptor"), ["replaced"]);
}

fn a_restartable_sequence_leads_nobody_from_lent_code(stage: &Stage) {
    let ran = waits(stage, ("moved", MOVED), "40");
    check(&ran, &json!({ "built": 0, "status": 0, "readable": 0 }));
    assert!(ran.is_complete(), "{}", ran.receipt);
    assert_eq!(ran.actions("descriptor"), ["replaced"; 40]);
}

fn whoever_is_led_to_calls_of_its_own_makes_none(stage: &Stage) {
    is_led_and_ends(stage, "1");
}

fn whoever_is_led_from_lent_code_to_calls_of_its_own_makes_none(stage: &Stage) {
    is_led_and_ends(stage, "40");
}

/// Somebody outside names the section again and again, in a file that the program has mapped. If
/// he is too slow, it is repaired.
fn is_led_and_ends(stage: &Stage, count: &str) {
    stage.file("rewrite", "@ \u{1}\0\0\0\0\0");
    let ran = waits(stage, ("moved", MOVED), count);
    let (led, killed) = match ran.said["status"] == 0 {
        true => (json!({ "built": 0, "status": 0, "readable": 0 }), false),
        false => (json!({ "built": 0, "status": -libc::SIGKILL, "readable": null }), true),
    };
    check(&ran, &led);
    assert!(ran.is_complete(), "{}", ran.receipt);
    assert_eq!(ran.actions("descriptor").contains(&"killed"), killed, "{}", ran.receipt);
}

/// The kernel sends it back to the beginning, as natively, for having stood still.
fn a_restartable_sequence_that_was_interrupted_begins_anew(stage: &Stage) {
    let ran = waits(stage, ("interrupted", include_str!("interrupted.c")), "");
    check(&ran, &json!({ "built": 0, "status": 0, "readable": 0 }));
    assert_eq!(ran.actions("descriptor"), ["replaced"]);
}

fn whoever_has_calls_handed_to_itself_makes_none_in_their_place(stage: &Stage) {
    let ran = waits(stage, ("dispatched", include_str!("dispatched.c")), "");
    check(&ran, &json!({ "built": 0, "status": -libc::SIGKILL, "readable": null }));
    assert!(ran.is_complete(), "{}", ran.receipt);
    assert_eq!(ran.actions("descriptor"), ["killed"]);
}

/// Takes `secret` from a program that waits for something in the file `go`, and prints a number
/// then.
fn waits(stage: &Stage, (name, source): (&str, &str), argument: &str) -> Ran {
    stage.file(&format!("{name}.c"), source);
    stage.file("go", &"\0".repeat(4096));
    stage.file("area", &"\0".repeat(4096));
    let script = format!("program = './{name}', '{argument}'\n{RUNS}");
    stage.without_secret(&script)
}

const RUNS: &str = r#"
source = program[0] + ".c"
build = ["cc", "-w", "-O1", "-fcf-protection=none", "-no-pie", "-o", program[0], source]
said["built"] = subprocess.run(build).returncode
alone = {**os.environ, "GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
waiting = subprocess.Popen(program, stdout=subprocess.PIPE, env=alone)
while not os.path.exists(program[0] + ".waits"):
    time.sleep(0.002)
time.sleep(0.05)
change()
with open("go", "r+b") as go:
    go.write(b"x")
said["readable"] = json.loads(waiting.communicate()[0] or "null")
said["status"] = waiting.returncode
"#;
