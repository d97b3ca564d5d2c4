//! Limits on time, memory, processes, files.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::stage::Stage;
use crate::user::User;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    the_time_limit_ends_the_command,
    what_ignores_the_time_limit_is_killed,
    a_command_within_the_time_limit_is_left_alone,
    resource_limits_are_set,
    limits_are_never_raised,
    memory_is_limited,
    processes_are_limited,
    the_cgroup_is_removed,
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
        plan["limits"] = json!({"time_ms": 100});
        let ran = stage.run(&plan, "trap '' TERM; sleep 60");
        assert_eq!(ran.status.code(), Some(124), "{plan} {ran:?}");
    }
}

fn a_command_within_the_time_limit_is_left_alone(stage: &Stage) {
    let ran = stage.run(&json!({"limits": {"time_ms": 20_000}}), "exit 5");
    assert_eq!(ran.status.code(), Some(5), "{ran:?}");
}

fn resource_limits_are_set(stage: &Stage) {
    let plan = json!({"limits": {"open_files": 64, "file": 512}});
    let ran = stage.run(&plan, "ulimit -n; ulimit -f; head -c 1000 /dev/zero > big; echo $?");
    assert!(ran.out.starts_with("64\n1\n"), "{ran:?}");
    assert_eq!(std::fs::metadata(stage.path().join("big")).expect("big").len(), 512);
}

fn limits_are_never_raised(stage: &Stage) {
    let plan = json!({"limits": {"open_files": 1_000_000_000}});
    let ran = stage.run(&plan, "ulimit -n");
    let limit: u64 = ran.out.trim().parse().expect("a number");
    assert!(limit < 1_000_000_000, "{ran:?}");
}

fn memory_is_limited(stage: &Stage) {
    let plan = json!({"limits": {"memory": 64 << 20}});
    // dd holds one block of that size in memory.
    let ran = stage.run(&plan, "dd if=/dev/zero of=/dev/null bs=16M count=1 2>/dev/null && echo small; dd if=/dev/zero of=/dev/null bs=256M count=1 2>/dev/null && echo big");
    assert_eq!(ran.out, "small\n", "{ran:?}");
}

fn processes_are_limited(stage: &Stage) {
    let plan = json!({"limits": {"processes": 8}});
    // Without a cgroup the kernel limits the user, and root not at all.
    let by_cgroup = std::fs::create_dir("/sys/fs/cgroup/pids/dewar-probe").is_ok();
    let _ = std::fs::remove_dir("/sys/fs/cgroup/pids/dewar-probe");
    if stage.user == User::Root && !by_cgroup {
        return;
    }
    let script =
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done 2>/dev/null; jobs -p | wc -l";
    let ran = stage.run(&plan, script);
    let started: u32 = ran.out.trim().parse().unwrap_or(0);
    assert!(started < 9, "{ran:?}");
}

fn the_cgroup_is_removed(stage: &Stage) {
    let plan = json!({"limits": {"memory": 1 << 30, "processes": 100, "cpus": 1.0}});
    let ran = stage.run(&plan, "cat /proc/1/cgroup; exit 3");
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
    let left = ["memory", "pids", "cpu", "unified", ""].map(|controller| {
        let entries = std::fs::read_dir(std::path::Path::new("/sys/fs/cgroup").join(controller));
        let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let pid = |name: std::ffi::OsString| {
            Some(name.to_str()?.strip_prefix("dewar-")?.split_once('.')?.0.to_owned())
        };
        let pids = names.filter_map(pid);
        pids.filter(|pid| !std::path::Path::new("/proc").join(pid).exists()).count()
    });
    assert_eq!(left, [0; 5]);
}
