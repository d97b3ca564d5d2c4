//! `allow --undo`: what it takes back, and what it leaves; and which changes are Dewar's own.

use crate::{
    learn,
    trust::{Home, READ_THEM},
};
use rustix::fs::inotify;
use std::{collections::BTreeSet, fs, mem::MaybeUninit, path::Path};

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

#[test]
fn what_the_user_has_taken_out_since_is_not_put_back_by_a_run() {
    let home = learn::Home::new();
    fs::write(home.path().join("two.txt"), "two").unwrap();
    let run = |script: &str| home.say(&["run", "--no-daemon", "--", "sh", "-c", script]);
    let allow = || home.say(&["allow", "1", "--write", "mine.toml"]);
    let file = home.work().join("mine.toml");
    run("cat ~/notes.txt");
    assert_eq!(allow().status, 0);
    let granted = fs::read_to_string(&file).unwrap();
    run("ln mine.toml second; cp mine.toml copy; cat ~/two.txt");
    let said = allow();
    assert!(
        said.status == 2 && said.err.contains("could have written"),
        "a second name: {}",
        said.err
    );
    for hand in ["", "files.hide = ['${home}/notes.txt']\n"] {
        fs::write(&file, hand).unwrap();
        run("cp copy mine.toml; cat ~/two.txt");
        assert_eq!(fs::read_to_string(&file).unwrap(), granted);
        let said = allow();
        assert!(said.status == 2 && said.err.contains("could have written"), "{}", said.err);
    }
}

#[test]
fn what_dewar_itself_has_written_or_taken_back_is_changed_further() {
    let home = learn::Home::new();
    fs::write(home.path().join("two.txt"), "two").unwrap();
    let deny = |name: &str| {
        home.say(&["run", "--no-daemon", "--", "cat", &home.path().join(name).to_string_lossy()]);
    };
    let allow = || {
        let said = home.say(&["allow", "1", "--write", "mine.toml"]);
        assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    };
    for name in ["notes.txt", "two.txt"] {
        deny(name);
        allow();
    }
    let said = home.say(&["allow", "--undo", "--write", "mine.toml"]);
    assert_eq!(said.status, 0, "{}", said.err);
    allow();
    assert!(fs::read_to_string(home.work().join("mine.toml")).unwrap().contains("two.txt"));
}

/// The names that come to be in `directory` while `act` is done.
fn names_made(directory: &Path, act: impl FnOnce()) -> BTreeSet<String> {
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    let made = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
    inotify::add_watch(&watch, directory, made).unwrap();
    act();
    let mut room = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut room);
    let mut names = BTreeSet::new();
    while let Ok(event) = events.next() {
        names.insert(event.file_name().unwrap().to_string_lossy().into_owned());
    }
    names
}

/// What lies beside a profile, a run that goes on can open, and write once it is the profile.
#[test]
fn a_profile_is_replaced_by_nothing_that_has_lain_beside_it() {
    // The second on another file system than what Dewar keeps.
    for (place, want) in [("/var/tmp", &["own.toml"][..]), ("/dev/shm", &[])] {
        let home = Home::new();
        let directory = tempfile::tempdir_in(place).unwrap();
        let profile = directory.path().join("own.toml");
        let name = profile.to_str().unwrap();
        fs::write(&profile, "extends = \"workspace\" # mine\n").unwrap();
        home.say(&["run", "--no-daemon", "-p", name, "--", "sh", "-c", READ_THEM]);
        let made = names_made(directory.path(), || {
            for words in
                [&["allow", "1", "--write", name][..], &["allow", "--undo", "--write", name]]
            {
                let said = home.say(words);
                assert_eq!(said.status, 0, "{words:?}: {}{}", said.out, said.err);
            }
        });
        assert_eq!(made, want.iter().map(|it| (*it).to_owned()).collect(), "{place}");
        assert_eq!(fs::read_to_string(&profile).unwrap(), "extends = \"workspace\" # mine\n");
    }
}
