//! What the end of a run says, and how its command finds the standard streams.

use crate::ask::{Home, text};
use std::{
    fs,
    process::{Command, Output},
};

const KEPT_OUT: &str = "variables kept out: ";

/// Runs a command with a variable that is kept out.
fn with_token(home: &Home, script: &str) -> Output {
    let args = ["run", "--no-daemon", "--", "sh", "-c", script];
    home.command(&[], &args).env("A_TOKEN", "x").output().unwrap()
}

#[test]
fn of_a_command_that_fails_without_a_denial_is_explained_which_variables_were_kept_out() {
    let home = Home::new();
    for (script, is_told) in
        [("test -n \"$A_TOKEN\"", true), ("true", false), ("cat ~/notes.txt", false)]
    {
        let said = text(&with_token(&home, script).stderr);
        assert!(!said.contains(KEPT_OUT), "{script}: {said}");
        let explained = text(&home.say(&["explain"]).stdout);
        let told = explained.contains(KEPT_OUT) && explained.contains("A_TOKEN");
        assert_eq!(told, is_told, "{script}: {explained}");
    }
}

#[test]
fn a_name_that_could_not_be_looked_up_is_told_of_though_the_command_succeeds() {
    let home = Home::new();
    let lookup = "import socket\ntry: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nexcept OSError: print('none')";
    for profile in ["offline", "npm", "cargo"] {
        let args = ["run", "--no-daemon", "-p", profile, "--", "/usr/bin/python3", "-c", lookup];
        let output = home.say(&args);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "none\n"));
        let said = text(&output.stderr);
        assert!(said.contains("may not create a new udp_socket"), "{profile}: {said}");
    }
}

#[test]
fn what_a_shell_remembers_in_the_home_is_not_told_of_where_it_does_without() {
    let home = Home::new();
    fs::write(home.path().join(".bashrc"), "").unwrap();
    let interactive = ["run", "--no-daemon", "--", "bash", "-ic", "true"];
    let said = text(&home.say(&interactive).stderr);
    assert!(!said.contains("dewar: "), "{said}");
    assert!(text(&home.say(&["explain"]).stdout).contains(".bashrc"));
    // Another program may not do without.
    let said =
        text(&home.say(&["run", "--no-daemon", "--", "sh", "-c", "cat ~/.bashrc; true"]).stderr);
    assert!(said.contains(".bashrc; the command succeeded"), "{said}");
}

#[test]
fn closed_standard_streams_are_closed_to_the_command() {
    let home = Home::new();
    for (close, command) in [(">&-", "echo hi"), ("<&-", "cat"), ("2>&-", "sh -c 'echo hi >&2'")] {
        let status = |before: &str| {
            let script = format!("exec {before} {command} {close}");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).current_dir(home.path().join("work"));
            shell.env("HOME", home.path()).env("XDG_STATE_HOME", home.path().join("state"));
            shell.output().unwrap().status.code()
        };
        let dewar = format!("'{}' run --no-daemon --", test_support::dewar().display());
        assert_eq!(status(&dewar), status("env"), "{command} {close}");
    }
}

#[test]
fn a_limit_that_was_reached_is_told_of() {
    let probe = std::path::Path::new("/sys/fs/cgroup/pids/dewar-ended-probe");
    // Where no cgroup can be made, nobody counts.
    if fs::create_dir(probe).is_err() {
        return;
    }
    fs::remove_dir(probe).unwrap();
    let home = Home::new();
    let profile = "extends = \"workspace\"\nlimits.processes = 8\n";
    fs::write(home.path().join("work/few.toml"), profile).unwrap();
    let many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done";
    let said = home.say(&["run", "--no-daemon", "-p", "few.toml", "--", "sh", "-c", many]);
    let said = text(&said.stderr);
    assert!(said.contains("`limits.processes` was reached"), "{said}");
}

#[test]
fn a_script_whose_first_line_names_what_is_not_there_is_said_to() {
    let home = Home::new();
    for (first, want) in [
        ("#!/no/such/shell", "its first line names `/no/such/shell`, which is not there"),
        ("#!/bin/sh\r", "its first line ends in CR LF"),
    ] {
        let script = home.path().join("work/script");
        fs::write(&script, format!("{first}\nexit 0\n")).unwrap();
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let output = home.say(&["run", "--no-daemon", "--", "./script"]);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(127) && said.contains(want), "{first:?}: {said}");
    }
    let said = text(&home.say(&["run", "--no-daemon", "--", "no-such-command"]).stderr);
    assert!(said.contains("; no directory of PATH has it"), "{said}");
}
