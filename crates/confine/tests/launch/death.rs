//! The end: nothing of a sandbox outlives its command or its monitor.

use std::io::Read;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::stage::{Stage, end_of, processes, until};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    nothing_outlives_the_command,
    nothing_outlives_a_killed_monitor,
    nothing_outlives_a_killed_init,
    a_daemon_does_not_escape,
];

fn plans() -> [Value; 3] {
    [json!({}), json!({"namespaces": "none"}), json!({"pid": false})]
}

/// A number of seconds that no other test sleeps for, to find the sleepers by.
fn mark(stage: &Stage, number: usize) -> String {
    format!(
        "9{}{}{number}",
        std::process::id(),
        stage.user.name().len() + stage.path().as_os_str().len()
    )
}

fn gone(mark: &str) -> bool {
    until(|| processes(mark).is_empty().then_some(())).is_some()
}

fn nothing_outlives_the_command(stage: &Stage) {
    for (number, plan) in plans().iter().enumerate() {
        let mark = mark(stage, number);
        let ran = stage.run(
            plan,
            &format!(
                "sleep {mark} & (sleep {mark} & sleep {mark} &) ; setsid sleep {mark} & exit 4"
            ),
        );
        assert_eq!(ran.status.code(), Some(4), "{ran:?}");
        // Not even for a moment.
        assert!(processes(&mark).is_empty(), "{plan}");
    }
}

fn a_daemon_does_not_escape(stage: &Stage) {
    for (number, plan) in plans().iter().enumerate() {
        let mark = mark(stage, 10 + number);
        let script = format!(
            "(setsid sh -c 'trap \"\" HUP TERM INT; (setsid sleep {mark} &) ; sleep {mark}' >/dev/null 2>&1 &) ; sleep 0.1"
        );
        stage.run(plan, &script);
        assert!(processes(&mark).is_empty(), "{plan}");
    }
}

/// Starts a sandbox with three sleepers, hits one of its keepers, and looks for survivors.
fn strike(stage: &Stage, plan: &Value, number: usize, strike: impl Fn(Pid, Pid)) {
    let mark = mark(stage, number);
    let script =
        format!("sleep {mark} & setsid sleep {mark} & (sleep {mark} &) ; echo ready; sleep {mark}");
    let mut command = stage.dewar(plan, &["sh", "-c", &script]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start");
    let mut stdout = child.stdout.take().expect("stdout");
    stdout.read_exact(&mut [0; 6]).expect("ready");
    until(|| (processes(&mark).len() >= 4).then_some(())).expect("four sleepers");
    let monitor = Pid::from_child(&child);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()));
    let init = children.expect("children").trim().parse().ok().and_then(Pid::from_raw);
    strike(monitor, init.expect("one child: init"));
    end_of(&mut child);
    assert!(gone(&mark), "{plan}: {:?} survive", processes(&mark));
}

fn nothing_outlives_a_killed_monitor(stage: &Stage) {
    for (number, plan) in plans().iter().enumerate() {
        strike(stage, plan, 20 + number, |monitor, _| {
            kill_process(monitor, Signal::KILL).expect("kill");
        });
    }
}

fn nothing_outlives_a_killed_init(stage: &Stage) {
    for (number, plan) in plans().iter().enumerate() {
        strike(stage, plan, 30 + number, |_, init| {
            kill_process(init, Signal::KILL).expect("kill");
        });
    }
}
