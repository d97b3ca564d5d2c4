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
fn what_a_link_of_a_trusted_name_leads_to_is_told() {
    let home = Home::new();
    for directory in ["repo/.venv/bin", "repo/envs"] {
        fs::create_dir_all(home.path(directory)).unwrap();
    }
    for (target, link) in [("rules", "Makefile"), ("../../interpreter", ".venv/bin/python")] {
        symlink(target, home.path(&format!("repo/{link}"))).unwrap();
    }
    for file in ["rules", "interpreter", "notes"] {
        fs::write(home.path(&format!("repo/{file}")), "").unwrap();
    }
    let told = report(&home, "/bin:/usr/bin", "echo > rules; echo > interpreter; echo > notes");
    assert!(told.contains("/repo/rules ") && told.contains("/repo/interpreter "), "{told}");
    assert!(!told.contains("/repo/notes "), "{told}");
}

#[test]
fn what_is_removed_hides_nothing_that_is_left() {
    let home = Home::new();
    fs::create_dir(home.path("repo/bin")).unwrap();
    let path = format!("{}:/bin:/usr/bin", home.path("repo/bin").display());
    let told = report(&home, &path, "cd bin; touch $(seq 1000); rm *; echo > ls");
    assert!(told.contains("/repo/bin/ls ") && !told.contains("not kept"), "{told}");
}
