//! Attacks on processes outside, Dewar's own among them.

use crate::{Case, cases, stage::Stage};
use std::process::Command;

pub(crate) const CASES: &[Case] = cases![reaching_processes_outside];

fn reaching_processes_outside(stage: &Stage) {
    // Of the same user, and dumpable.
    let mut sleep = Command::new("sleep");
    sleep.arg("60");
    let mut outside = stage.like(sleep).spawn().expect("start `sleep`");
    stage.holds("workspace", "reach_out", &[&outside.id().to_string()]);
    assert!(outside.try_wait().expect("look").is_none(), "the attack has killed a process outside");
    outside.kill().expect("kill `sleep`");
    outside.wait().expect("wait for `sleep`");
}
