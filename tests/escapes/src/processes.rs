//! Attacks on processes outside, Dewar's own among them.

use crate::{
    Case, cases,
    dewar::Call,
    stage::{Stage, held},
};
use std::{os::unix::process::CommandExt as _, process::Command};

pub(crate) const CASES: &[Case] = cases![reaching_processes_outside, signalling_a_group_outside];

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

/// Where the kernel does not keep signals inside: the monitor alone does.
fn signalling_a_group_outside(stage: &Stage) {
    let mut sleep = Command::new("sleep");
    sleep.arg("60").process_group(0);
    let mut outside = stage.like(sleep).spawn().expect("start `sleep`");
    let call = Call { unscoped: true, degraded: true, ..stage.call("workspace") };
    let attack = stage.command(call, "group_outside", &[&outside.id().to_string()]).output();
    let was_killed = outside.try_wait().expect("look").is_some();
    outside.kill().expect("kill `sleep`");
    outside.wait().expect("wait for `sleep`");
    held(&attack.expect("start `dewar`"));
    assert!(!was_killed, "the attack has killed a group outside");
}
