//! What a run leaves behind that programs outside would execute: named in its report, by whatever
//! way it came there.

use crate::trust::Home;
use assert_cmd::Command;
use std::{fs, os::unix::fs::symlink};

/// The report of a script that was run with `path` for programs outside.
fn report(home: &Home, path: &str, script: &str) -> String {
    let dewar = |args: &[&str]| {
        let mut dewar = Command::new(test_support::dewar());
        dewar
            .args(args)
            .current_dir(home.path("repo"))
            .env("PATH", path)
            .env("HOME", home.path(""));
        dewar.env("XDG_STATE_HOME", home.path("state")).env("COLUMNS", "1000");
        String::from_utf8(dewar.output().unwrap().stdout).unwrap()
    };
    let run =
        ["run", "--no-daemon", "-q", "-p", "workspace+guarded", "--", "/bin/sh", "-c", script];
    dewar(&run);
    let told = dewar(&["report"]);
    let (_, planted) = told.split_once("what programs outside").expect("a part of the report");
    planted.to_owned()
}

#[test]
fn a_program_in_a_directory_of_path_is_told_however_path_spells_it() {
    let home = Home::new();
    fs::create_dir(home.path("repo/bin")).unwrap();
    symlink("repo", home.path("link")).unwrap();
    for spelled in ["repo/bin", "link/bin", "repo/../repo/bin"] {
        let path = home.path(spelled).display().to_string();
        let told = report(&home, &format!("{path}:/bin:/usr/bin"), "echo > bin/ls");
        assert!(told.contains("/repo/bin/ls "), "{spelled}: {told}");
    }
    let told = report(&home, "./bin:/bin:/usr/bin", "echo > bin/ls");
    assert!(told.contains("/repo/bin/ls "), "{told}");
}

#[test]
fn what_leads_elsewhere_is_told_wherever_it_comes_to_lie() {
    let home = Home::new();
    fs::create_dir(home.path("repo/bin")).unwrap();
    let path = format!("{}:/bin:/usr/bin", home.path("repo/bin").display());
    let script = "set -e; mkdir -p x a b/c; mv bin x/bin; ln -s x bin; ln -s x gradle; ln -s x in\n\
                  ln -s ../notes a/l; mv a/l moved; ln -s ../notes a/k; ln -P a/k linked\n\
                  ln -s ../../notes b/c/l; mv b/c c";
    let told = report(&home, &path, script);
    for name in ["bin", "gradle", "moved", "linked", "c/l"] {
        assert!(told.contains(&format!("/repo/{name} ")), "{name}: {told}");
    }
    for name in ["in", "a/k"] {
        assert!(!told.contains(&format!("/repo/{name} ")), "{name}: {told}");
    }
}

#[test]
fn what_is_removed_hides_nothing_that_is_left() {
    let home = Home::new();
    fs::create_dir(home.path("repo/bin")).unwrap();
    let path = format!("{}:/bin:/usr/bin", home.path("repo/bin").display());
    let told = report(&home, &path, "cd bin; touch $(seq 1000); rm *; echo > ls");
    assert!(told.contains("/repo/bin/ls ") && !told.contains("not kept"), "{told}");
}
