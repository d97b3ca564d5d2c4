//! What is said to whoever starts something in the wrong place, or by the wrong words.

use crate::{
    ask::{Home, text},
    dewar_in,
};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Output,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

fn run(home: &Home, args: &[&str]) -> Output {
    home.say(&[&["run", "--no-daemon"], args].concat())
}

#[test]
fn a_workspace_that_is_a_part_of_a_project_is_told_of_unless_it_was_chosen() {
    let home = Home::new();
    let part = home.path().join("u/src");
    fs::create_dir_all(&part).unwrap();
    fs::write(home.path().join("u/package.json"), "{}").unwrap();
    let say = |args: &[&str]| home.command(&[], args).current_dir(&part).output().unwrap();
    let line = format!(
        "{}, which holds package.json, is out of reach: `dewar run -w ..` takes in the whole project",
        home.path().join("u").display()
    );
    let said = say(&["run", "--no-daemon", "--", "true"]);
    assert!(text(&said.stderr).contains(&line), "{}", text(&said.stderr));
    // Also where the command has ended well.
    let explained = text(&say(&["explain"]).stdout);
    assert!(explained.contains(&line) && explained.contains("no denial"), "{explained}");
    for args in [&["-q"][..], &["-w", ".."], &["-p", "open"]] {
        let args = [&["run", "--no-daemon"], args, &["--", "true"]].concat();
        let said = say(&args);
        assert!(!text(&said.stderr).contains("out of reach"), "{args:?}: {}", text(&said.stderr));
    }
}

#[test]
fn what_no_run_is_without_is_not_said_to_keep_it_from_starting() {
    let home = Home::new();
    let said = run(
        &home,
        &["--without", "seccomp-notify", "--allow-degraded", "--", "cat", "../notes.txt"],
    );
    let told = text(&said.stderr);
    assert!(told.contains("so it is used all the same"), "{told}");
    assert!(!told.contains("does not start") && told.contains("denied once"), "{told}");
}

#[test]
fn a_limit_of_files_that_is_too_low_is_named_as_the_cause() {
    let home = Home::new();
    for (files, is_enough) in [(3, false), (40, true)] {
        let profile = format!("extends = \"workspace\"\nlimits.files = {files}\n");
        fs::write(home.path().join("work/few.toml"), profile).unwrap();
        let said = run(&home, &["-p", "few.toml", "--", "sh", "-c", "ulimit -n"]);
        let told = text(&said.stderr);
        assert_eq!(said.status.success(), is_enough, "{files}: {told}");
        match is_enough {
            true => assert_eq!(text(&said.stdout), "40\n"),
            false => assert!(told.contains("`limits.files` of the profile"), "{told}"),
        }
    }
}

#[test]
fn a_share_of_processors_in_a_wrong_form_is_answered_with_the_right_one() {
    let home = Home::new();
    for share in ["0.5", "1"] {
        let profile = format!("extends = \"workspace\"\nlimits.cpu = {share}\n");
        fs::write(home.path().join("work/cpu.toml"), profile).unwrap();
        let said = home.say(&["policy", "check", "./cpu.toml"]);
        let told = text(&said.stderr);
        assert!(said.status.code() == Some(2) && told.contains("`50%`"), "{told}");
    }
}

#[test]
fn a_run_that_has_ended_is_said_to_have() {
    let home = Home::new();
    run(&home, &["--name", "ci", "--", "true"]);
    for args in [&["policy", "history", "ci"][..], &["grant", "ci", "--file", "/srv/x"]] {
        let said = home.say(args);
        let told = text(&said.stderr);
        assert!(told.contains("run ci has ended; `dewar explain ci`"), "{args:?}: {told}");
        assert_eq!(said.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_domain_that_nothing_enters_is_warned_of() {
    let home = Home::new();
    let told = |program: &str, args: &[&str]| {
        let net = "network.connect = [\"127.0.0.1:9\"]";
        let profile =
            format!("extends = \"workspace\"\n[domains.git]\nexec = [\"{program}\"]\n{net}\n");
        fs::write(home.path().join("work/git.toml"), profile).unwrap();
        text(&home.say(args).stderr)
    };
    let line = "nothing enters the domain `git`: /usr/bin/gti is not there";
    for args in [
        &["policy", "check", "./git.toml"][..],
        &["run", "--no-daemon", "-p", "./git.toml", "--", "true"],
    ] {
        let said = told("/usr/bin/gti", args);
        assert!(said.contains(line), "{args:?}: {said}");
        let said = told("/usr/bin/env", args);
        assert!(!said.contains("nothing enters"), "{args:?}: {said}");
    }
}

#[test]
fn words_for_a_shell_and_programs_in_the_place_of_commands_are_answered_with_what_to_write() {
    let home = Home::new();
    for (word, want) in [
        (
            "make -j2",
            "no directory of PATH has it in this run; it is one word; without the quotes: `dewar run -- make -j2`",
        ),
        ("cd", "`dewar run -- sh -c 'cd …'`"),
        ("FOO=1", "`dewar run -- env FOO=1 …`"),
    ] {
        let said = run(&home, &["--", word, "x"]);
        let told = text(&said.stderr);
        assert!(said.status.code() == Some(127) && told.contains(want), "{told}");
    }
    let said = dewar_in(home.path().as_path(), &["cat", "x"]);
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(said.err.contains("`dewar run -- cat` runs it"), "{}", said.err);
}

#[test]
fn the_workspace_and_the_home_are_there_by_the_names_that_lead_to_them_by_links() {
    let home = Home::new();
    let top = home.path();
    let project = top.join("u/real/project");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("file"), "of the project\n").unwrap();
    symlink("real", top.join("u/by")).unwrap();
    symlink("u", top.join("me")).unwrap();
    // Nothing else that leads there is shown.
    symlink("real/project", top.join("u/another")).unwrap();
    let script = "cat \"$HOME/by/project/file\"; ls -d \"$HOME/another\"";
    let run = |pwd: &Path, args: &[&str]| {
        let mut command = home.command(&[], &[&["run", "--no-daemon"], args].concat());
        command.args(["--", "sh", "-c", script]).current_dir(pwd).env("PWD", pwd);
        command.env("HOME", top.join("me")).output().unwrap()
    };
    for (pwd, args) in [("me/by/project", &[][..]), ("me/by", &["-w", "project"])] {
        let said = run(&top.join(pwd), args);
        assert_eq!(text(&said.stdout), "of the project\n", "{pwd}: {}", text(&said.stderr));
    }
}

#[test]
fn what_is_denied_may_come_and_go_while_a_run_starts() {
    let home = Home::new();
    let keys = home.path().join("work/keys");
    let stop = Arc::new(AtomicBool::new(false));
    fs::create_dir(&keys).unwrap();
    let profile = "extends = 'workspace'\nfiles.deny = ['${workspace}/keys/k*']\n";
    fs::write(home.path().join("work/some.toml"), profile).unwrap();
    let files: Vec<PathBuf> = (0..8).map(|at| keys.join(format!("k{at}"))).collect();
    let stopped = Arc::clone(&stop);
    let changes = thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            for file in &files {
                // Replaced, gone, made anew.
                fs::write(file.with_extension("new"), "key").unwrap();
                fs::rename(file.with_extension("new"), file).unwrap();
                fs::remove_file(file).unwrap();
                fs::write(file, "key").unwrap();
            }
        }
    });
    for turn in 0..12 {
        let said = run(&home, &["-p", "some.toml", "--", "true"]);
        assert!(said.status.success(), "{turn}: {}", text(&said.stderr));
    }
    stop.store(true, Ordering::Relaxed);
    changes.join().unwrap();
}
