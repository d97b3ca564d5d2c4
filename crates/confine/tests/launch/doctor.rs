//! What `dewar doctor` finds, on this machine and on poorer ones.

use serde_json::{Value, json};

use crate::stage::{Ran, Stage, run};
use crate::user::{User, program};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    every_layer_says_what_is_lost_without_it,
    a_refused_user_namespace_names_the_setting,
    a_covered_proc_is_named,
    a_poorer_machine_starts_degraded_only_when_told,
    probing_leaves_nothing_behind,
];

fn layers(ran: &Ran) -> Vec<Value> {
    let value: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    value["layers"].as_array().expect("a list").clone()
}

fn layer(ran: &Ran, name: &str) -> Value {
    layers(ran).into_iter().find(|layer| layer["name"] == name).expect("the layer")
}

/// Runs a script as root of a new user and mount namespace; `$0` is this program.
fn poorer(stage: &Stage, script: &str) -> Ran {
    let mut command = stage.command("/usr/bin/unshare".as_ref());
    command.args(["-Urm", "sh", "-c", script]).arg(program());
    run(command)
}

fn every_layer_says_what_is_lost_without_it(stage: &Stage) {
    let mut command = stage.command(program());
    command.arg("--as-doctor");
    let ran = run(command);
    assert_eq!(layers(&ran).len(), 25, "{ran:?}");
    for layer in layers(&ran) {
        assert!(!layer["without"].as_str().expect("text").is_empty(), "{layer}");
        // Exactly what is missing has a reason.
        assert_eq!(layer["available"] == true, layer["reason"].is_null(), "{layer}");
        assert_ne!(layer["reason"], "not tried", "{layer}");
    }
    // The tests of the launch could not have passed without it.
    assert_eq!(layer(&ran, "seccomp-notify")["available"], true);
}

fn a_refused_user_namespace_names_the_setting(stage: &Stage) {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" --as-doctor";
    let user = layer(&poorer(stage, script), "user");
    assert_eq!(user["available"], false, "{user}");
    assert!(user["reason"].as_str().expect("text").contains("user.max_user_namespaces"), "{user}");
}

fn a_covered_proc_is_named(stage: &Stage) {
    if stage.user == User::Root {
        // The kernel refuses it to those without privilege only.
        return;
    }
    // The first user namespace locks the cover, the second one sees it locked.
    let script = "mount -t tmpfs none /proc/sys && exec unshare -Urm \"$0\" --as-doctor";
    let pid = layer(&poorer(stage, script), "pid");
    assert_eq!(pid["available"], false, "{pid}");
    assert!(pid["reason"].as_str().expect("text").contains("/proc are covered"), "{pid}");
}

fn a_poorer_machine_starts_degraded_only_when_told(stage: &Stage) {
    let run = |plan: &Value| {
        poorer(
            stage,
            &format!(
                "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" --as-dewar '{plan}' echo inside"
            ),
        )
    };
    let ran = run(&json!({"user": true}));
    assert_eq!(ran.status.code(), Some(125), "{ran:?}");
    assert!(ran.err.contains("refused new namespaces"), "{ran:?}");
    assert_eq!(ran.out, "");
    let ran = run(&json!({"user": true, "degrade": true}));
    assert_eq!(ran.out, "inside\n", "{ran:?}");
    assert!(ran.err.contains("without user"), "{ran:?}");
}

fn probing_leaves_nothing_behind(stage: &Stage) {
    let mut command = stage.command("/bin/sh".as_ref());
    let script = "exec 3>&-; before=$(readlink /proc/self/ns/*); \"$0\" --as-doctor >/dev/null; ls /sys/fs/cgroup /sys/fs/cgroup/* | grep dewar-$$";
    command.args(["-c", script]).arg(program());
    assert_eq!(run(command).out, "");
}
