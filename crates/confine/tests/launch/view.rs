//! What exists in the sandbox's file system.

use serde_json::json;

use crate::stage::Stage;
use crate::user::User;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    tmp_is_private_and_the_workspace_stays,
    what_is_absent_does_not_exist,
    an_absent_directory_cannot_be_written,
    kept_links_are_links,
    denied_things_cannot_be_opened,
    what_is_read_only_cannot_be_changed,
    the_hosts_file_is_replaced,
    a_hidden_working_directory_is_refused,
    a_view_without_a_mount_namespace_is_refused,
    no_mount_is_seen_outside,
];

fn tmp_is_private_and_the_workspace_stays(stage: &Stage) {
    // The test's directory lies in the temporary directory.
    stage.file("data", "kept");
    let here = stage.path();
    let plan = json!({"view": {"private_tmp": true, "keep": [here]}});
    let mine = format!("dewar-{}", std::process::id());
    let script = format!(
        "cat data; echo more > made; ls -A /var/tmp /dev/shm; stat -c %a /tmp; \
         touch /tmp/{mine} /var/tmp/{mine} /dev/shm/{mine}; \
         for d in /tmp/*; do test $d = /tmp/{mine} || echo $d; done; pwd"
    );
    let ran = stage.run(&plan, &script);
    let want = format!("kept/dev/shm:\n\n/var/tmp:\n1777\n{0}\n{0}\n", here.display());
    assert_eq!(ran.out, want, "{ran:?}");
    assert_eq!(std::fs::read_to_string(here.join("made")).expect("made"), "more\n");
    for outside in ["/tmp", "/var/tmp", "/dev/shm"] {
        assert!(!std::path::Path::new(outside).join(&mine).exists(), "{outside}");
    }
}

fn home(stage: &Stage) -> serde_json::Value {
    let home = stage.directory("home");
    stage.directory("home/work");
    stage.directory("home/.ssh");
    stage.file("home/.ssh/id_test", "secret");
    stage.file("home/.profile", "profile");
    std::os::unix::fs::symlink("work", home.join("link")).expect("a link");
    stage.file("home/work/source", "source");
    json!({"cwd": home.join("work"), "view": {
        "absent": [home],
        "keep": [home.join("work"), home.join(".profile"), home.join("link"), home.join("gone")],
    }})
}

fn what_is_absent_does_not_exist(stage: &Stage) {
    let plan = home(stage);
    let script = "cd ..; ls -A; cat .profile work/source; echo w > work/new; \
        cat .ssh/id_test || stat .ssh; ls -d gone";
    let ran = stage.run(&plan, script);
    assert_eq!(ran.out, ".profile\nlink\nwork\nprofilesource", "{ran:?}");
    assert_eq!(ran.err.matches("No such file").count(), 3, "{ran:?}");
    assert!(stage.path().join("home/work/new").exists());
}

fn an_absent_directory_cannot_be_written(stage: &Stage) {
    let ran = stage.run(
        &home(stage),
        "cd ..; mkdir .ssh; touch new; rmdir work; rm -f .profile; mv link other",
    );
    for refused in ["mkdir", "touch", "rmdir", "rm", "mv"] {
        assert!(ran.err.contains(refused), "{refused}: {ran:?}");
    }
    assert!(!stage.path().join("home/new").exists());
    assert!(stage.path().join("home/.profile").exists());
}

fn kept_links_are_links(stage: &Stage) {
    let ran = stage.run(&home(stage), "cd ..; readlink link; cat link/source");
    assert_eq!(ran.out, "work\nsource", "{ran:?}");
}

fn denied_things_cannot_be_opened(stage: &Stage) {
    let file = stage.file("secret", "secret");
    let directory = stage.directory("secrets");
    stage.file("secrets/one", "secret");
    let plan = json!({"view": {"denied": [file, directory, stage.path().join("gone")]}});
    let script = "cat secret; ls secrets; cat secrets/one; echo x > secret; rm secret; chmod 777 secret; mv secrets s";
    let ran = stage.run(&plan, script);
    assert_eq!(ran.out, "", "{ran:?}");
    assert_eq!(ran.err.lines().count(), 7, "{ran:?}");
    assert_eq!(std::fs::read_to_string(stage.path().join("secret")).expect("it"), "secret");
}

fn what_is_read_only_cannot_be_changed(stage: &Stage) {
    let directory = stage.directory("fixed");
    stage.file("fixed/file", "kept");
    let plan = json!({"view": {"read_only": [directory]}});
    let ran = stage.run(&plan, "cat fixed/file; echo x > fixed/file; touch fixed/new; touch free");
    assert_eq!(ran.out, "kept", "{ran:?}");
    assert_eq!(ran.err.matches("Read-only").count(), 2, "{ran:?}");
    assert!(stage.path().join("free").exists());
}

fn the_hosts_file_is_replaced(stage: &Stage) {
    let plan = json!({"view": {"hosts": "127.0.0.1 only\n"}});
    let ran = stage.run(&plan, "cat /etc/hosts; echo x >> /etc/hosts");
    assert_eq!(ran.out, "127.0.0.1 only\n", "{ran:?}");
    assert!(!ran.err.is_empty());
}

fn a_hidden_working_directory_is_refused(stage: &Stage) {
    let hidden = stage.directory("hidden/inner");
    let plan = json!({"cwd": hidden, "view": {"absent": [stage.path().join("hidden")]}});
    let ran = stage.run(&plan, "echo started");
    assert_eq!(ran.status.code(), Some(125), "{ran:?}");
    assert!(ran.err.contains("working directory"), "{ran:?}");
    assert_eq!(ran.out, "");
}

fn a_view_without_a_mount_namespace_is_refused(stage: &Stage) {
    let plan = json!({"namespaces": "none", "view": {"private_tmp": true}});
    let ran = stage.run(&plan, "echo started");
    assert_eq!(ran.status.code(), Some(125), "{ran:?}");
    assert!(ran.err.contains("mount namespace"), "{ran:?}");
}

fn no_mount_is_seen_outside(stage: &Stage) {
    if stage.user != User::Root {
        return;
    }
    let hidden = stage.directory("hidden");
    stage.file("hidden/file", "seen");
    let plan = json!({"view": {"absent": [hidden], "private_tmp": true, "keep": [stage.path()]}});
    let ran = stage.run(&plan, "ls hidden; sleep 0.2");
    assert_eq!(ran.out, "", "{ran:?}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.contains(stage.path().to_str().expect("UTF-8")));
    assert_eq!(std::fs::read_to_string(hidden.join("file")).expect("it"), "seen");
}
