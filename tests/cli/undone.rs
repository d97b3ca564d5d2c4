//! `allow --undo`: what it takes back, and what it leaves.

use crate::trust::{Home, READ_THEM};
use std::fs;

/// Has a denial allowed in a directory beside the others, by a profile of its own.
fn allow_in(home: &Home, directory: &str) {
    fs::create_dir_all(home.path(directory)).unwrap();
    home.say_in(directory, &["run", "--no-daemon", "-p", "workspace", "--", "sh", "-c", READ_THEM]);
    let said = home.say_in(directory, &["allow", "1", "--write", "own.toml"]);
    assert_eq!(said.status, 0, "{directory}: {}{}", said.out, said.err);
}

#[test]
fn what_was_changed_in_another_project_is_taken_back_by_its_name_only() {
    let home = Home::new();
    let (first, second) = (home.path("first/own.toml"), home.path("second/own.toml"));
    allow_in(&home, "first");
    allow_in(&home, "second");
    let said = home.say_in("second", &["allow", "--undo"]);
    let shown = second.display();
    let told = format!("taking the last change of {shown} back\n{shown} is gone");
    assert!(said.status == 0 && said.out.starts_with(&told), "{}{}", said.out, said.err);
    let said = home.say_in("second", &["allow", "--undo"]);
    assert_eq!(said.status, 2, "{}", said.out);
    let named = format!("--undo --write {}", first.display());
    assert!(said.err.contains(&named) && first.exists(), "{}", said.err);
    let said = home.say_in("second", &["allow", "--undo", "--write", "../first/own.toml"]);
    assert!(said.status == 0 && !first.exists(), "{}", said.err);
}

#[test]
fn a_profile_that_learn_has_written_is_not_removed() {
    let home = Home::new();
    fs::create_dir(home.path("first")).unwrap();
    // Nobody listens there.
    let script = "import socket; socket.socket().connect_ex(('127.0.0.1', 1))";
    let said = home.say_in("first", &["learn", "--", "/usr/bin/python3", "-c", script]);
    assert_eq!(said.status, 0, "{}", said.err);
    for words in [&["allow", "--undo"][..], &["allow", "--undo", "--write", "dewar.toml"]] {
        let said = home.say_in("first", words);
        assert_eq!(said.status, 2, "{}", said.out);
        assert!(said.err.contains("was written by `dewar learn`"), "{}", said.err);
        assert!(home.path("first/dewar.toml").exists());
    }
}

#[test]
fn a_trusted_profile_that_is_taken_back_leaves_a_project_without_one() {
    let home = Home::new();
    home.run("repo", READ_THEM);
    let said = home.say(&["allow", "1", "--write", "dewar.toml"]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    home.trust();
    assert_eq!(home.run("repo", READ_THEM).out, "notes");
    let said = home.say(&["allow", "--undo"]);
    assert!(said.out.contains("is gone, as it was before"), "{}{}", said.out, said.err);
    let said = home.run("repo", READ_THEM);
    assert!(said.status == 1 && said.err.contains("denied once"), "{}", said.err);
}
