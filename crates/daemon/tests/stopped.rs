//! Runs that do not apply a change of policy, each in a process of its own so that it can be
//! stopped.

mod common;

use common::{
    DaemonProcess, administration, keep, new_run, place, role as started_as, start, wait_until,
};
use daemon::{DaemonDirs, Target};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    path::Path,
    process::{Child, Command},
    thread,
};

/// What this program does when it is started again.
#[test]
fn role() {
    match started_as() {
        Some((role, place)) if role == "daemon" => keep(&place),
        Some((role, place)) => be_a_run(&role, &place),
        None => {}
    }
}

/// A monitor with one process to watch.
fn be_a_run(id: &str, place: &DaemonDirs) {
    drop(administration(place));
    let (registration, _spool) = new_run(place, id);
    registration
        .follow(Vec::new(), |change| Some(change.seqno.to_string().into_bytes()))
        .expect("followed");
    let mut child = Command::new("sleep").arg("100").spawn().expect("a child");
    std::fs::write(place.runtime.join(id), child.id().to_string()).expect("written");
    child.wait().expect("ended");
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a PID");
    kill_process(pid, signal).expect("signalled");
}

fn state(pid: u32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

/// A daemon and some runs; and the process that each run watches.
struct Stage {
    place: DaemonDirs,
    _daemon: DaemonProcess,
    runs: Vec<(Child, u32)>,
    _directory: tempfile::TempDir,
}

impl Stage {
    fn new(runs: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let place = place(directory.path());
        let daemon = DaemonProcess::start(directory.path());
        let runs =
            runs.iter().map(|id| watched(start(id, directory.path()), &place.runtime.join(id)));
        let runs = runs.collect();
        Self { place, _daemon: daemon, runs, _directory: directory }
    }
}

fn watched(run: Child, path: &Path) -> (Child, u32) {
    let mut pid = None;
    wait_until("the run has a child", || {
        pid = std::fs::read_to_string(path).ok().and_then(|text| text.parse().ok());
        pid.is_some()
    });
    (run, pid.expect("found"))
}

impl Drop for Stage {
    fn drop(&mut self) {
        for (run, child) in &mut self.runs {
            // One that was killed already is as good.
            let _ = (run.kill(), run.wait());
            let _ = Pid::from_raw(child.cast_signed()).map(|pid| kill_process(pid, Signal::KILL));
        }
    }
}

#[test]
fn a_run_that_is_stopped_is_reported_frozen_and_killed_and_nobody_else_waits() {
    let mut stage = Stage::new(&["stuck", "well"]);
    let (stuck, child) = (stage.runs[0].0.id(), stage.runs[0].1);
    let well = stage.runs[1].1;
    signal(stuck, Signal::STOP);
    let place = stage.place.clone();
    let change = thread::spawn(move || {
        administration(&place).set(Target::All, &[("open".into(), true)]).expect("changed")
    });
    wait_until("what it guards is frozen", || state(child) == Some('T'));
    assert_ne!(state(well), Some('T'));
    // The daemon answers others meanwhile.
    assert_eq!(administration(&stage.place).runs().expect("answered").len(), 2);
    assert!(!change.is_finished());
    let changed = change.join().expect("no panic");
    let member = |name: &str| {
        let mut all = changed.iter().flat_map(|change| &change.members);
        all.find(|member| member.run == name).expect(name).clone()
    };
    let (late, other) = (member("stuck"), member("well"));
    assert_eq!((late.outcome.as_str(), late.late.as_str()), ("killed", "killed"));
    assert_eq!(
        (other.outcome.as_str(), other.late.as_str(), other.report.as_str()),
        ("applied", "", "2")
    );
    assert!(other.after_us < late.after_us, "{other:?} {late:?}");
    assert!(changed.iter().all(|change| change.complete));
    assert!(!stage.runs[0].0.wait().expect("it ended").success());
    wait_until("what it guards has ended, too", || matches!(state(child), None | Some('Z')));
}

#[test]
fn a_run_that_answers_late_goes_on_and_so_does_what_it_guards() {
    let stage = Stage::new(&["late"]);
    let (late, child) = (stage.runs[0].0.id(), stage.runs[0].1);
    signal(late, Signal::STOP);
    let place = stage.place.clone();
    let change = thread::spawn(move || {
        administration(&place)
            .set(Target::Run("la".into()), &[("open".into(), true)])
            .expect("changed")
    });
    wait_until("what it guards is frozen", || state(child) == Some('T'));
    signal(late, Signal::CONT);
    let changed = change.join().expect("no panic");
    assert_eq!(changed[0].members[0].outcome, "applied");
    wait_until("what it guards goes on", || state(child) != Some('T'));
}

#[test]
fn two_changes_at_once_are_both_complete_and_one_comes_after_the_other() {
    let stage = Stage::new(&["a", "b"]);
    let changes: Vec<_> = [true, false]
        .map(|on| {
            let place = stage.place.clone();
            thread::spawn(move || {
                administration(&place).set(Target::All, &[("open".into(), on)]).expect("changed")
            })
        })
        .into_iter()
        .map(|change| change.join().expect("no panic"))
        .collect();
    let mut numbers: Vec<u32> = changes.iter().map(|change| change[0].seqno).collect();
    for change in changes.iter().flatten() {
        assert!(change.complete && change.members.len() == 2, "{change:?}");
        // Each has said so for this very change, or for the one after it that overtook it.
        let applied =
            |member: &daemon::ChangedMember| member.report.parse::<u32>().expect("a number");
        assert!(change.members.iter().all(|member| applied(member) >= change.seqno), "{change:?}");
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
}

#[test]
fn a_change_for_one_run_does_not_reach_another_with_the_same_policy() {
    let stage = Stage::new(&["one", "two"]);
    let mut daemon = administration(&stage.place);
    let changed = daemon.set(Target::Run("one".into()), &[("open".into(), true)]).expect("changed");
    assert_eq!(changed[0].members.len(), 1);
    for run in daemon.runs().expect("runs") {
        assert_eq!(run.booleans, [("open".to_owned(), run.id == "one")], "{run:?}");
        assert_eq!(run.seqno, if run.id == "one" { 2 } else { 1 });
    }
    let wrong = daemon.set(Target::All, &[("open".into(), true), ("nonsense".into(), true)]);
    assert!(wrong.unwrap_err().to_string().contains("no run"));
    let wrong =
        daemon.set(Target::Run("two".into()), &[("open".into(), true), ("nonsense".into(), true)]);
    assert!(wrong.unwrap_err().to_string().contains("no boolean `nonsense`"));
    let two = daemon.runs().expect("runs").into_iter().find(|run| run.id == "two").expect("two");
    assert_eq!((two.booleans[0].1, two.seqno), (false, 1), "all or nothing");
}

#[test]
fn a_run_that_is_killed_is_dropped() {
    let mut stage = Stage::new(&["dead", "well"]);
    stage.runs[0].0.kill().expect("killed");
    stage.runs[0].0.wait().expect("buried");
    let changed =
        administration(&stage.place).set(Target::All, &[("open".into(), true)]).expect("changed");
    let killed = |member: &daemon::ChangedMember| member.outcome == "killed";
    assert!(changed[0].complete && !changed[0].members.iter().any(killed), "{changed:?}");
    wait_until("it is not listed", || {
        administration(&stage.place).runs().expect("runs").len() == 1
    });
}
