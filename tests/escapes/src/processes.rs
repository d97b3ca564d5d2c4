//! Attacks on processes outside, Dewar's own among them.

use crate::{
    Case, cases,
    dewar::Call,
    stage::{Stage, Variant, held},
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::{
    os::unix::process::CommandExt as _,
    process::Command,
    time::{Duration, Instant},
};

pub(crate) const CASES: &[Case] = cases![
    reaching_processes_outside,
    signalling_a_group_outside,
    signalling_by_a_descriptor_that_is_anothers_by_then,
    looking_into_processes_where_the_kernel_does_not_keep_that_inside,
    reaching_the_group_that_dewar_is_in,
    reaching_what_was_started_before_by_the_process_that_is_dewar_now,
    outliving_a_run_whose_group_is_killed,
];

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

/// Where the kernel does not keep signals inside, either.
fn signalling_by_a_descriptor_that_is_anothers_by_then(stage: &Stage) {
    let call = Call { unscoped: true, degraded: true, ..stage.call("workspace") };
    let attack = stage.command(call, "swap_descriptor", &[]);
    let mut outside = Command::new(stage.program("outside", "swap_descriptor"));
    outside.arg("outside").arg(attack.get_program()).args(attack.get_args());
    held(&stage.like(outside).output().expect("start the one outside"));
}

/// Without Landlock. What a descriptor, or a number of the machine's, means can be exchanged.
fn looking_into_processes_where_the_kernel_does_not_keep_that_inside(stage: &Stage) {
    let call = Call { unbounded: true, ..stage.call("workspace") };
    let pids = if stage.variant == Variant::Bare { "the machine's" } else { "own" };
    held(&stage.command(call, "by_number", &[pids]).output().expect("start `dewar`"));
}

/// By its number 0, which is of no PID namespace; where the kernel keeps signals inside and not.
fn reaching_the_group_that_dewar_is_in(stage: &Stage) {
    for unscoped in [false, true] {
        let mut sleep = Command::new("sleep");
        sleep.arg("60").process_group(0);
        let mut outside = stage.like(sleep).spawn().expect("start `sleep`");
        let group = i32::try_from(outside.id()).expect("a PID");
        let call = Call { unscoped, degraded: unscoped, ..stage.call("workspace") };
        let mut attack = stage.command(call, "own_group", &[]);
        let attack = attack.process_group(group).output();
        let was_killed = outside.try_wait().expect("look").is_some();
        let stat = std::fs::read_to_string(format!("/proc/{group}/stat")).unwrap_or_default();
        let niceness = stat.split(' ').nth(18).map(str::to_owned);
        let class = Command::new("ionice").args(["-p", &group.to_string()]).output();
        outside.kill().expect("kill `sleep`");
        outside.wait().expect("wait for `sleep`");
        held(&attack.expect("start `dewar`"));
        assert!(!was_killed, "the attack has killed a process beside Dewar");
        assert_eq!(niceness.as_deref(), Some("0"), "the attack has slowed down another");
        let class = String::from_utf8(class.expect("ionice").stdout).expect("UTF-8");
        assert!(!class.contains("idle"), "the attack has another's disk wait: {class}");
    }
}

/// A script starts a helper, and becomes Dewar by exec: so the helper is a child of Dewar's own,
/// as what is left behind in a container is of PID 1. It outlives the run.
fn reaching_what_was_started_before_by_the_process_that_is_dewar_now(stage: &Stage) {
    const SCRIPT: &str = r#"sleep 60 </dev/null >/dev/null 2>&1 & echo $! >"$0"; exec "$@" $!"#;
    for (attack, fast) in [("reach_out", false), ("reach_out", true), ("own_group", false)] {
        let number = stage.file("number", "");
        let call = Call { fast, ..stage.call("workspace") };
        let call = stage.command(call, attack, &[]);
        let mut script = Command::new("/bin/sh");
        script.arg("-c").arg(SCRIPT).arg(&number).arg(call.get_program()).args(call.get_args());
        // Signals to its group reach nobody else's.
        let attack = stage.like(script).process_group(0).output().expect("start `sh`");
        let number = std::fs::read_to_string(&number).expect("a number");
        let helper: i32 = number.trim().parse().expect("a number");
        let stat = std::fs::read_to_string(format!("/proc/{helper}/stat")).unwrap_or_default();
        let _ = Pid::from_raw(helper).map(|it| kill_process(it, Signal::KILL));
        held(&attack);
        let mut fields = stat.split(' ').skip(2);
        assert_eq!(fields.next(), Some("S"), "the helper has ended, or is stopped: {stat:?}");
        assert_eq!(fields.nth(15), Some("0"), "the attack has slowed down the helper");
    }
}

/// The monitor and init are killed at once with all of the group, while others leave it.
fn outliving_a_run_whose_group_is_killed(stage: &Stage) {
    let written = stage.file("work/written", "");
    let name = written.to_str().expect("UTF-8");
    let mut attack = stage.command(stage.call("workspace"), "leave_group", &[name]);
    let mut attack = attack.process_group(0).spawn().expect("start `dewar`");
    let until = Instant::now() + Duration::from_secs(60);
    let length = || std::fs::metadata(&written).expect("what was written").len();
    while length() < 100 {
        assert!(Instant::now() < until, "they do not leave the group");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process_group(Pid::from_child(&attack), Signal::KILL).expect("kill the group");
    attack.wait().expect("the end of `dewar`");
    loop {
        let before = length();
        std::thread::sleep(Duration::from_millis(500));
        if length() == before {
            return;
        }
        assert!(Instant::now() < until, "they outlive the run");
    }
}
