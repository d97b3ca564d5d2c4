//! Limits on time, memory, processes, files.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::stage::Stage;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    the_time_limit_ends_the_command,
    what_ignores_the_time_limit_is_killed,
    a_command_within_the_time_limit_is_left_alone,
    resource_limits_are_set,
    limits_are_never_raised,
];

fn the_time_limit_ends_the_command(stage: &Stage) {
    let start = Instant::now();
    let ran = stage.run(
        &json!({"limits": {"time_ms": 200}}),
        "trap 'echo told; exit 3' TERM; while :; do sleep 0.02; done",
    );
    assert_eq!((ran.status.code(), ran.out.as_str()), (Some(124), "told\n"), "{ran:?}");
    assert!(start.elapsed() >= Duration::from_millis(200));
}

fn what_ignores_the_time_limit_is_killed(stage: &Stage) {
    for plan in [json!({}), json!({"namespaces": "none"})] {
        let mut plan = plan;
        plan["limits"] = json!({"time_ms": 100, "grace_ms": 100});
        let ran = stage.run(&plan, "trap '' TERM; sleep 60");
        assert_eq!(ran.status.code(), Some(124), "{plan} {ran:?}");
    }
}

fn a_command_within_the_time_limit_is_left_alone(stage: &Stage) {
    let ran = stage.run(&json!({"limits": {"time_ms": 20_000}}), "exit 5");
    assert_eq!(ran.status.code(), Some(5), "{ran:?}");
}

fn resource_limits_are_set(stage: &Stage) {
    let plan = json!({"limits": {"open_files": 64, "file": 512, "cpu_ms": 1500}});
    let ran =
        stage.run(&plan, "ulimit -n; ulimit -f; ulimit -t; head -c 1000 /dev/zero > big; echo $?");
    assert!(ran.out.starts_with("64\n1\n2\n"), "{ran:?}");
    assert_eq!(std::fs::metadata(stage.path().join("big")).expect("big").len(), 512);
}

fn limits_are_never_raised(stage: &Stage) {
    let plan = json!({"limits": {"open_files": 1_000_000_000}});
    let ran = stage.run(&plan, "ulimit -n");
    let limit: u64 = ran.out.trim().parse().expect("a number");
    assert!(limit < 1_000_000_000, "{ran:?}");
}
