//! From what was denied to a profile that works, by nothing but the commands that are told.

use super::learn::{Home, Said};
use std::{fs, process::Command};

const PLAIN: [&str; 3] = ["run", "--no-daemon", "--"];
const OWN: [&str; 5] = ["run", "--no-daemon", "-p", "./own.toml", "--"];

fn run(home: &Home, words: &[&str], command: &[&str]) -> Said {
    home.say(&[words, command].concat())
}

/// Carries out the command that `said` tells on a line of its own.
fn follow(home: &Home, said: &Said) -> Said {
    let told = said.out.lines().filter_map(|line| line.strip_prefix("  dewar "));
    let told: Vec<&str> = told.flat_map(str::split_whitespace).collect();
    assert!(told.first() == Some(&"allow"), "{}{}", said.out, said.err);
    home.say(&told)
}

#[test]
fn what_has_to_be_named_is_told_as_a_command_that_allows_it() {
    for (made, script) in [
        (".local/bin", "cp /bin/true ~/.local/bin/mine"),
        (".gnupg", "mkdir -p ~/.gnupg/private"),
        (".config/autostart", "mkdir -p ~/.config/autostart/x"),
        ("work", "cat ~/.ssh/id_ed25519"),
    ] {
        let home = Home::new();
        fs::create_dir_all(home.path().join(made)).unwrap();
        let command = ["sh", "-c", script];
        assert_ne!(run(&home, &PLAIN, &command).status, 0, "{script}");
        let said = home.say(&["allow", "--all", "--write", "own.toml"]);
        assert_eq!(said.status, 1, "{script}: {}{}", said.out, said.err);
        let allowed = follow(&home, &said);
        assert_eq!(allowed.status, 0, "{script}: {}{}{}", said.out, allowed.out, allowed.err);
        let said = run(&home, &OWN, &command);
        let profile = fs::read_to_string(home.work().join("own.toml")).unwrap();
        assert_eq!(said.status, 0, "{script}: {}{profile}", said.err);
    }
}

#[test]
fn what_lies_in_a_directory_that_could_not_be_made_is_allowed_by_its_name() {
    let home = Home::new();
    let place = home.path().join(".config");
    fs::remove_dir_all(&place).unwrap();
    let command =
        ["sh", "-c", "mkdir ~/.config; mkdir ~/.config/mine && echo x > ~/.config/mine/set"];
    assert_ne!(run(&home, &PLAIN, &command).status, 0);
    let said = home.say(&["explain"]);
    let told = format!("`dewar allow {}/NAME`", place.display());
    assert!(said.out.contains(&told), "{}", said.out);
    let named = place.join("mine").display().to_string();
    let said = home.say(&["allow", &named, "--write", "own.toml"]);
    let line = "files.write = [\"${home}/.config/mine/\"]";
    assert!(said.status == 0 && said.out.contains(line), "{}{}", said.out, said.err);
    let command = ["sh", "-c", "mkdir -p ~/.config/mine && echo x > ~/.config/mine/set"];
    assert_eq!(run(&home, &OWN, &command).status, 0);
    // Nothing beside it.
    assert_ne!(run(&home, &OWN, &["sh", "-c", "mkdir ~/.config/other"]).status, 0);
}

/// Shells are told there to export tokens: only who names it by himself means it.
#[test]
fn a_secret_directory_is_granted_to_whom_names_it_and_not_told() {
    let home = Home::new();
    let place = home.path().join(".config/fish");
    fs::create_dir_all(&place).unwrap();
    let command = ["sh", "-c", "echo x > ~/.config/fish/fish_variables.Xy7Kq2"];
    assert_ne!(run(&home, &PLAIN, &command).status, 0);
    let said = home.say(&["allow", "--all", "--write", "own.toml"]);
    assert!(said.status == 1 && !said.out.contains("dewar allow"), "{}", said.out);
    let said = home.say(&["allow", &place.display().to_string(), "--write", "own.toml"]);
    let line = "files.write = [\"${home}/.config/fish\"]";
    assert!(said.status == 0 && said.out.contains(line), "{}{}", said.out, said.err);
    assert!(said.out.contains("UNGUARDED"), "{}", said.out);
    assert_eq!(run(&home, &OWN, &command).status, 0);
}

#[test]
fn a_file_that_is_not_there_yet_is_made_by_the_run() {
    let home = Home::new();
    // And what it makes and removes each time, beside it.
    let script = "set -e; echo x > ~/base; echo x > ~/base-journal; rm ~/base-journal";
    let command = ["sh", "-c", script];
    assert_ne!(run(&home, &PLAIN, &command).status, 0);
    let mut words = PLAIN.to_vec();
    for round in 0.. {
        assert!(round < 4, "{}", home.say(&["explain"]).out);
        let said = home.say(&["allow", "--all", "--write", "own.toml"]);
        assert_eq!(said.status, 0, "{}{}", said.out, said.err);
        assert!(!said.out.contains("make it before"), "{}", said.out);
        words = OWN.to_vec();
        if run(&home, &words, &command).status == 0 {
            break;
        }
    }
    assert!(home.path().join("base").is_file());
    // Not more than that.
    let said = run(&home, &words, &["sh", "-c", "echo x > ~/other"]);
    assert!(said.status != 0 && !home.path().join("other").exists(), "{}", said.err);
    let said = run(&home, &words, &["sh", "-c", "cat ~/notes.txt"]);
    assert!(said.status != 0 && said.out.is_empty(), "{}", said.out);
}

#[test]
fn what_stays_denied_while_a_profile_is_learned_is_allowed_in_it() {
    let home = Home::new();
    let command = ["sh", "-c", "mkdir -p ~/.gnupg && echo x > notes"];
    let learned = home.say(&[&["learn", "-o", "own.toml", "--"], &command[..]].concat());
    assert!(learned.err.contains("stays denied: mkdir may not"), "{}", learned.err);
    // It is about what was learned, not about the profile that this was learned under.
    let said = home.say(&["allow", "--all"]);
    assert!(said.status == 1 && said.out.contains("its full name"), "{}{}", said.out, said.err);
    let said = follow(&home, &said);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("own.toml changed"), "{}", said.out);
    let said = run(&home, &OWN, &command);
    assert_eq!(said.status, 0, "{}", said.err);
    // Another file the run could have written itself while it was learned from.
    home.say(&[&["learn", "--force", "-o", "own.toml", "--"], &command[..]].concat());
    fs::write(home.work().join("other.toml"), "extends = 'open'\n").unwrap();
    let said = home.say(&["allow", "--all", "--write", "other.toml"]);
    assert!(said.status == 2 && said.err.contains("could have written"), "{}", said.err);
}

#[test]
fn a_repository_that_is_cloned_is_let_go_as_a_whole() {
    let home = Home::new();
    let there = home.path().join("there").display().to_string();
    let made = Command::new("git").args(["init", "-q", &there]).status().unwrap();
    assert!(made.success());
    let profile = format!("extends = 'workspace+guarded'\nfiles.read = ['{there}']\n");
    fs::write(home.work().join("own.toml"), profile).unwrap();
    let command = ["git", "-c", "safe.directory=*", "clone", "-q", "../there", "here"];
    assert_ne!(run(&home, &OWN, &command).status, 0);
    let said = home.say(&["allow", "--all"]);
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    let said = follow(&home, &said);
    let line = "files.unguarded = [\"${workspace}/here\"]";
    assert!(said.status == 0 && said.out.contains(line), "{}{}", said.out, said.err);
    assert!(said.out.contains("UNGUARDED: all in ${workspace}/here"), "{}", said.out);
    let said = run(&home, &OWN, &command);
    assert_eq!(said.status, 0, "{}", said.err);
    let said = run(&home, &OWN, &["sh", "-c", "echo x > AGENTS.md"]);
    assert_ne!(said.status, 0, "{}", said.err);
}

#[test]
fn why_a_file_is_not_executed_is_told() {
    let home = Home::new();
    for (name, told) in [("./input", "`chmod +x ./input` makes it so"), ("./", "it is a directory")]
    {
        let said = run(&home, &PLAIN, &[name]);
        assert!(said.status == 126 && said.err.contains(told), "{name}: {}", said.err);
    }
}
