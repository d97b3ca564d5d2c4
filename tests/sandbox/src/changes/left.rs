//! What runs leave behind that were killed.

use super::{Running, stage_says};
use crate::{
    Case, cases,
    process::{run, until},
    stage::{Stage, bash},
};

/// The cases of this part.
pub(super) const CASES: &[Case] = cases![
    what_a_killed_run_has_left_is_removed,
    the_temporary_directory_of_a_killed_run_is_removed,
];

fn what_a_killed_run_has_left_is_removed(stage: &Stage) {
    let mut running = Running::start(stage, stage.call(), "sleep 60");
    let directory = stage.home().join("state/dewar/control");
    let sockets = || std::fs::read_dir(&directory).expect("the directory of runs").count();
    assert_eq!(sockets(), 1);
    let mut child = running.child.take().expect("a child");
    child.kill().expect("kill it");
    child.wait().expect("wait for it");
    assert_eq!((stage_says(stage, &["ps"]).out().as_str(), sockets()), ("nothing runs\n", 1));
    let socket = std::fs::read_dir(&directory).expect("a directory").next().expect("a socket");
    let path = socket.expect("a socket").path();
    let old = std::process::Command::new("touch").args(["-d", "1 minute ago"]).arg(path).status();
    assert!(old.expect("touch").success());
    assert_eq!((stage_says(stage, &["ps"]).out().as_str(), sockets()), ("nothing runs\n", 0));
}

fn the_temporary_directory_of_a_killed_run_is_removed(stage: &Stage) {
    let said = stage.work().join("said");
    let mut running =
        Running::start(stage, stage.call(), "echo $TMPDIR > said.new; mv said.new said; sleep 60");
    until(|| said.exists().then_some(())).expect("the directory is said");
    let mut child = running.child.take().expect("a child");
    child.kill().expect("kill it");
    child.wait().expect("wait for it");
    let left = std::fs::read_to_string(said).expect("what was said");
    let left = std::path::Path::new(left.trim());
    if stage.variant.has_namespaces() {
        assert_eq!(left, std::path::Path::new("/tmp"), "the view's own, which went with it");
        return;
    }
    let runs = || {
        let ran = run(stage.dewar(stage.call(), &bash("true")), b"");
        assert!(ran.status.success(), "{}", ran.err());
        left.exists()
    };
    assert!(runs(), "it may belong to a run that is about to lock it");
    let old = std::process::Command::new("touch").args(["-d", "2 minutes ago"]).arg(left).status();
    assert!(old.expect("touch").success());
    assert!(!runs(), "{}", left.display());
}
