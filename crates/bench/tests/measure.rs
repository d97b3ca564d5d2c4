//! The library as a program uses it: workers inside configurations, Ctrl-C, raw runs.

use bench::{
    comparison::{Comparison, Medium},
    config::{Config, Kind},
    export,
    runner::Plan,
    syscalls::Syscalls,
    table::{self, Style},
    worker::Worker,
    workload::Workload,
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env, fs,
    path::PathBuf,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// The example program, which cargo builds beside the tests.
fn program() -> PathBuf {
    let test = env::current_exe().expect("a path");
    test.ancestors().nth(2).expect("two directories up").join("examples/measure")
}

fn worker() -> Worker {
    Worker { program: program(), arguments: vec!["worker".into()] }
}

fn configs() -> Vec<Config> {
    vec![
        Config::native(),
        Config::new("env", Kind::Dewar, &["env"], "the same, one exec later"),
        Config::new("none", Kind::Peer, &["no-such-sandbox"], "not there"),
    ]
}

fn plan(rounds: usize) -> Plan {
    Plan { rounds, timeout: Duration::from_secs(120), ..Plan::default() }
}

#[test]
fn operations_have_a_time_or_a_reason_under_every_configuration_that_runs() {
    let medium = Medium::memory();
    let syscalls = Syscalls { configs: configs(), worker: worker(), medium, plan: plan(1) };
    let report = syscalls.run(&mut |_| {}).expect("a report");
    let [native, env, none, floor] = &report.columns[..] else { panic!("{report:?}") };
    assert_eq!((native.cells.len(), env.cells.len(), none.cells.len()), (13, 13, 0));
    assert!(none.failure.is_some() && floor.failure.is_none());
    let open = &env.cells[0];
    assert!(open.ns.as_ref().is_ok_and(|ns| ns.median > 100.0), "{open:?}");
    assert_eq!(open.vs_floor.is_some(), floor.cells[0].ns.is_ok(), "{open:?}, {floor:?}");
    let text = report.table(Style::Markdown);
    assert!(text.contains("| floor: open+close, notified, continued"), "{text}");
    assert!(text.contains("none: cannot run `no-such-sandbox`"), "{text}");
}

#[test]
fn the_walk_is_timed_by_the_worker_and_raw_runs_are_kept() {
    let comparison = Comparison {
        workload: Workload::walk(worker()),
        configs: configs(),
        media: vec![Medium::memory()],
        plan: plan(1),
    };
    let report = comparison.run(&mut |_| {}).expect("a report");
    let figures = report.rows[1].figures.as_ref().expect("figures");
    assert!(figures.time_s.median > 0.01 && figures.vs_native.is_some(), "{figures:?}");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("runs.json");
    export::write_json(&path, &report).expect("a file");
    let text = fs::read_to_string(&path).expect("a file");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(2 * 2 + 1));
    assert_eq!(json["runs"][0]["round"], 0);
    assert!(json["runs"][0]["measured"]["wall_s"].is_f64(), "{text}");
    assert!(json["machine"]["cpu"].is_string() && json["interrupted"] == false, "{text}");
}

#[test]
fn after_ctrl_c_what_was_measured_is_printed_and_nothing_keeps_running() {
    let mut child = Command::new(program())
        .args(["start", "100000"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example runs");
    sleep(Duration::from_millis(700));
    kill_process(Pid::from_child(&child), Signal::INT).expect("it still runs");
    let begin = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        assert!(begin.elapsed() < Duration::from_secs(10), "it does not stop");
        sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("output");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("interrupted"), "{text}");
    assert!(text.contains(" native "), "{text}");
}

#[test]
fn a_custom_command_runs_in_the_current_directory() {
    let command = ["sh", "-c", "test -f Cargo.toml"].map(Into::into).to_vec();
    let comparison = Comparison {
        workload: Workload::custom(command, Vec::new()),
        configs: vec![Config::native()],
        media: vec![Medium::disk(), Medium::memory()],
        plan: plan(1),
    };
    let report = comparison.run(&mut |_| {}).expect("a report");
    assert_eq!(report.rows.len(), 1);
    assert!(report.rows[0].figures.is_ok(), "{}", table::comparison(&report, Style::Plain));
}
