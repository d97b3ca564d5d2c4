//! Runs that are stopped with their monitors, and those whose monitor was killed.

use crate::ask::{Home, text};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    process::{Child, Stdio},
    time::{Duration, Instant},
};

/// Short beside what waiting for an answer takes.
const AT_ONCE: Duration = Duration::from_secs(9);

/// A run called `z` that sleeps, and its monitor.
fn begin(home: &Home) -> (Child, Pid) {
    let args = ["run", "--no-daemon", "--name", "z", "--", "sleep", "1000"];
    let run = home.command(&[], &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    home.say_soon(&["ps"], "(z)");
    let shown = home.say(&["ps", "--json"]).stdout;
    let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    let monitor = shown[0]["pid"].as_i64().unwrap();
    (run, Pid::from_raw(i32::try_from(monitor).unwrap()).unwrap())
}

/// Stops a monitor, and waits until it is stopped.
fn stop(monitor: Pid) {
    kill_process(monitor, Signal::STOP).unwrap();
    let status = format!("/proc/{}/status", monitor.as_raw_nonzero());
    while !std::fs::read_to_string(&status).unwrap().contains("State:\tT") {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends it.
fn end(mut run: Child, monitor: Pid) {
    let _ = kill_process(monitor, Signal::KILL);
    let _ = kill_process(monitor, Signal::CONT);
    run.wait().unwrap();
}

#[test]
fn a_run_that_is_stopped_is_told_of_at_once_with_how_it_goes_on() {
    let home = Home::new();
    let (run, monitor) = begin(&home);
    stop(monitor);
    let file = home.path().join("work").display().to_string();
    for (args, status, part) in [
        (&["ps"][..], 0, "(z)"),
        (&["ps"], 0, "stopped: `fg` in its shell, or `kill -CONT"),
        (&["ps", "--json"], 0, "\"stopped\": true"),
        (&["revoke", "z", "--file", &file], 1, "is stopped with its monitor"),
        (&["revoke", "last", "--all"], 1, "kill -CONT"),
        (&["revoke", "--all"], 1, "kill -CONT"),
        (&["explain", "z"], 2, "is stopped"),
        (&["run", "--name", "z", "--", "true"], 2, "is called `z` already"),
    ] {
        let began = Instant::now();
        let said = home.say(args);
        let took = began.elapsed();
        let told = text(&said.stdout) + &text(&said.stderr);
        assert!(told.contains(part) && !told.contains("nothing runs"), "{args:?}: {told}");
        assert_eq!(said.status.code(), Some(status), "{args:?}: {told}");
        assert!(took < AT_ONCE, "{args:?}: {took:?}");
    }
    kill_process(monitor, Signal::CONT).unwrap();
    home.say_soon(&["revoke", "z", "--file", &file], "complete after");
    end(run, monitor);
}

#[test]
fn a_name_that_two_runs_have_means_neither() {
    let home = Home::new();
    let args = ["run", "--no-daemon", "--name", "z", "--", "sleep", "1000"];
    let start = || home.command(&[], &args).stderr(Stdio::null()).spawn().unwrap();
    let both = || -> Vec<(String, Pid)> {
        let shown: serde_json::Value =
            serde_json::from_slice(&home.say(&["ps", "--json"]).stdout).unwrap();
        let run = |run: &serde_json::Value| {
            let pid = i32::try_from(run["pid"].as_i64().unwrap()).unwrap();
            (run["id"].as_str().unwrap().to_owned(), Pid::from_raw(pid).unwrap())
        };
        shown.as_array().unwrap().iter().map(run).collect()
    };
    let end_all = || {
        for (_, monitor) in both() {
            let _ = kill_process(monitor, Signal::KILL);
        }
    };
    let mut started;
    // Whoever finds the other one going on is refused; started at once, none does.
    loop {
        started = [start(), start()];
        let refused = |run: &mut Child| run.try_wait().unwrap().is_some();
        while both().len() < 2 && !started.iter_mut().any(refused) {
            std::thread::sleep(Duration::from_millis(50));
        }
        if both().len() == 2 {
            break;
        }
        while !started.iter_mut().all(refused) {
            end_all();
        }
    }
    let file = home.path().join("work").display().to_string();
    for args in [
        &["revoke", "z", "--file", &file][..],
        &["allow", "z", "--all"],
        &["policy", "history", "z"],
    ] {
        let said = home.say(args);
        let told = text(&said.stderr);
        assert!(told.contains("more than one run is called `z`"), "{args:?}: {told}");
        assert!(both().iter().all(|(id, _)| told.contains(id)), "{args:?}: {told}");
        assert_eq!(said.status.code(), Some(2), "{args:?}: {told}");
    }
    let by_id = home.say(&["revoke", &both()[1].0, "--file", &file]);
    assert!(text(&by_id.stdout).contains("complete after"), "{}", text(&by_id.stderr));
    end_all();
    for run in &mut started {
        run.wait().unwrap();
    }
}

#[test]
fn a_run_whose_monitor_was_killed_is_told_of_by_explain() {
    let home = Home::new();
    home.say(&["run", "--no-daemon", "--", "echo", "before"]);
    let (run, monitor) = begin(&home);
    end(run, monitor);
    let told = text(&home.say(&["explain"]).stdout);
    assert!(told.contains("(z), `sleep 1000`, ended without a record"), "{told}");
    assert!(told.contains("`echo before` under"), "{told}");
    let named = home.say(&["explain", "z"]);
    assert!(text(&named.stderr).contains("ended without a record"), "{}", text(&named.stderr));
    assert_eq!(named.status.code(), Some(2));
    // What has a record since is what is told of.
    home.say(&["run", "--no-daemon", "--", "echo", "after"]);
    let told = text(&home.say(&["explain"]).stdout);
    assert!(told.starts_with("`echo after` under"), "{told}");
}
