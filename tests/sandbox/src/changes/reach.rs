//! Grants of what a run cannot reach, because of its view or its profile.

use super::{Running, done, profile, refused, stage_says};
use crate::{Case, cases, stage::Stage};

/// The cases of this part.
pub(super) const CASES: &[Case] = cases![
    a_grant_of_what_the_view_leaves_out_says_so,
    a_grant_of_what_the_profile_hides_is_refused,
    a_profile_may_deny_what_was_granted_before,
    what_is_given_back_is_in_reach_as_before,
    a_run_with_a_loopback_of_its_own_gets_no_profile_that_connects_outside,
];

/// A file in the home that no rule is about, and how to try to read it.
fn notes(stage: &Stage) -> String {
    let notes = stage.home().join("notes");
    stage.file(&notes, "notes\n");
    format!("cat {}", notes.display())
}

/// Grants the notes; whether they can be read then.
fn grant_notes(stage: &Stage, running: &Running<'_>) -> bool {
    let ran = stage_says(stage, &["grant", "--file", "${home}/notes"]);
    let (code, out) = (ran.code(), ran.out());
    let in_view = !stage.variant.has_namespaces();
    if in_view {
        assert_eq!(code, 0, "{out}{}", ran.err());
        assert!(!out.contains("OUT OF REACH") && out.contains(" complete after"), "{out}");
        assert_eq!(running.attempt(), "yes");
    } else {
        assert_eq!(code, 1, "{out}{}", ran.err());
        let path = stage.home().join("notes");
        let told = format!("OUT OF REACH {}: it is not in the run's view", path.display());
        assert!(out.contains(&told) && !out.contains(" complete after"), "{out}");
        assert!(ran.err().contains("stays out of the run's reach"), "{}", ran.err());
        assert_eq!(running.attempt(), "no");
    }
    in_view
}

fn a_grant_of_what_the_view_leaves_out_says_so(stage: &Stage) {
    let running = Running::trying(stage, stage.call(), &notes(stage));
    assert_eq!(running.attempt(), "no");
    grant_notes(stage, &running);
    // It is policy in both cases, and is taken back as such.
    assert!(done(stage, &["policy", "history"]).contains("dewar grant --file"));
    done(stage, &["revoke", "--file", "${home}/notes"]);
    assert_eq!(running.attempt(), "no");
    running.stop();
}

fn a_grant_of_what_the_profile_hides_is_refused(stage: &Stage) {
    let running = Running::trying(stage, stage.call(), "cat ../.ssh/id_ed25519");
    let why = "that would give nothing: the profile denies or hides it (";
    for place in ["${home}/.ssh", "${home}/.ssh/id_ed25519", "/etc/shadow"] {
        refused(stage, &["grant", "--file", place], 1, why);
    }
    assert_eq!(running.attempt(), "no");
    assert_eq!(done(stage, &["policy", "history"]), "nothing was changed\n");
    running.stop();
}

fn a_profile_may_deny_what_was_granted_before(stage: &Stage) {
    let running = Running::trying(stage, stage.call(), &notes(stage));
    let could_read = grant_notes(stage, &running);
    let denies = profile(stage, "files.deny = [\"${home}/notes\"]\n");
    done(stage, &["policy", "load", "last", &denies]);
    assert_eq!(running.attempt(), "no", "it could before: {could_read}");
    running.stop();
}

fn what_is_given_back_is_in_reach_as_before(stage: &Stage) {
    let running = Running::trying(stage, stage.call(), "echo x > $TMPDIR/new");
    assert_eq!(running.attempt(), "yes");
    done(stage, &["revoke", "--file", "${tmp}"]);
    assert_eq!(running.attempt(), "no");
    let receipt = done(stage, &["grant", "--file", "${tmp}"]);
    assert!(!receipt.contains("OUT OF REACH"), "{receipt}");
    assert_eq!(running.attempt(), "yes");
    running.stop();
}

fn a_run_with_a_loopback_of_its_own_gets_no_profile_that_connects_outside(stage: &Stage) {
    stage.file(&stage.work().join("data"), "");
    let running = Running::trying(stage, stage.call(), "cat data");
    assert_eq!(running.attempt(), "yes");
    let connects = profile(stage, "network.connect = [\"192.0.2.1:443\"]\n");
    let loads = ["policy", "load", "last", &connects];
    let settled = stage.variant.has_namespaces();
    let part = if settled { "network of its own" } else { "given while it runs: TCP sockets" };
    refused(stage, &loads, 1, part);
    refused(stage, &["grant", "--net", "192.0.2.1:443"], 1, "started without a network");
    refused(stage, &["grant", "--all"], 1, "nothing was revoked");
    running.stop();
}
