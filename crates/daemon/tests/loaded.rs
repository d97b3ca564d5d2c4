//! A run loads another policy while the daemon has changed booleans of the one before.

mod common;

use common::{
    DaemonProcess, administration, keep, new_run, place, policy, role as started_as, wait_until,
};
use daemon::{Administration, Target};
use flask::{Class, Question, SecurityServer as _, perm};

/// What this program does when it is started again.
#[test]
fn role() {
    if let Some((_, place)) = started_as() {
        keep(&place);
    }
}

fn booleans(daemon: &mut Administration) -> Vec<(String, bool)> {
    daemon.runs().expect("listed").remove(0).booleans
}

#[test]
fn what_was_set_holds_under_the_next_policy_and_the_next_daemon() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = place(directory.path());
    let mut daemon = DaemonProcess::start(directory.path());
    let (run, _spool) = new_run(&place, "run");
    run.follow(Vec::new(), |_| Some(Vec::new())).expect("followed");
    let set = [("open".to_owned(), true)];
    let changed = administration(&place).set(Target::Run("run".into()), &set).expect("set");
    assert!(changed[0].complete, "{changed:?}");

    let mut next = policy();
    next.files.push(("more.cil".into(), "(boolean more false) (type more_t)".into()));
    run.load(&next, false).expect("loaded");
    let want = [("open".to_owned(), true), ("more".to_owned(), false)];
    assert_eq!(booleans(&mut administration(&place)), want);
    let opens = || {
        let [ssid, tsid] = ["u:r:app_t:s0", "u:r:gate_t:s0"]
            .map(|context| run.server.context_to_sid(context).expect("a SID"));
        let answer = run.server.compute_av(Question { ssid, tsid, tclass: Class::File });
        answer.expect("an answer").allowed.contains(perm::file::READ)
    };
    assert!(opens());

    daemon.kill();
    let _daemon = DaemonProcess::start(directory.path());
    // Until its policy is compiled, a run is listed without booleans.
    let listed = || booleans(&mut administration(&place));
    wait_until("the policy is compiled again", || !listed().is_empty());
    assert_eq!(listed(), want);
    assert!(opens());
    // And back: what the policy does not know any more is forgotten.
    run.load(&policy(), false).expect("loaded");
    assert_eq!(booleans(&mut administration(&place)), want[..1]);
}
