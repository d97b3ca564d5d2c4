//! What `dewar learn` writes holds when what the command made is gone again, and what it says is
//! true.

use super::learn::Home;
use std::fs;

fn learn(home: &Home, script: &str) -> (String, String) {
    let said = home.say(&["learn", "--force", "--", "sh", "-c", script]);
    // None is written where nothing was learned.
    let profile = fs::read_to_string(home.work().join("dewar.toml"));
    (profile.unwrap_or_default(), said.err)
}

fn replayed(home: &Home, script: &str) -> (i32, String, String) {
    let said = home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "sh", "-c", script]);
    (said.status, said.out, said.err)
}

#[test]
fn a_directory_that_the_command_makes_is_made_for_the_next_run() {
    let home = Home::new();
    let script = "mkdir -p ~/.cache/made && echo x > ~/.cache/made/f && cat ~/.cache/made/f";
    let (learned, _) = learn(&home, script);
    assert!(learned.contains("\"${home}/.cache/made/\""), "{learned}");
    assert_eq!(learn(&home, script).0, learned);
    fs::remove_dir_all(home.path().join(".cache")).unwrap();
    assert_eq!(replayed(&home, script), (0, "x\n".into(), String::new()), "{learned}");
}

#[test]
fn a_lock_beside_a_file_can_be_made_again_and_nothing_else_there() {
    let home = Home::new();
    let repo = home.path().join("repo");
    fs::create_dir(&repo).unwrap();
    fs::write(repo.join("HEAD"), "old\n").unwrap();
    let script = "cat ~/repo/HEAD > /dev/null; echo new > ~/repo/HEAD.lock && mv ~/repo/HEAD.lock ~/repo/HEAD";
    let (learned, _) = learn(&home, script);
    assert!(learned.contains("\"${home}/repo/HEAD.*\""), "{learned}");
    assert_eq!(replayed(&home, script), (0, String::new(), String::new()), "{learned}");
    assert_eq!(fs::read_to_string(repo.join("HEAD")).unwrap(), "new\n");
    replayed(&home, "echo x > ~/repo/hook");
    assert!(!repo.join("hook").exists(), "{learned}");
    // Where nothing tells it from all of the home, it is said.
    let (_, said) = learn(&home, "echo x > ~/passing; rm ~/passing");
    assert!(said.contains("make it before the run"), "{said}");
}

#[test]
fn a_command_that_failed_or_was_kept_from_something_is_not_said_to_have_all() {
    let home = Home::new();
    let (_, said) = learn(&home, "exit 3");
    assert!(said.contains("the command failed here, too (exit status 3)"), "{said}");
    let (_, said) = learn(&home, "cat ~/.ssh/id_ed25519; true");
    assert!(said.contains("stays denied") && !said.contains("grants all"), "{said}");
    let (_, said) = learn(&home, "git --version");
    assert!(!said.contains("not found, so not reached"), "{said}");
    let said = home.say(&["learn", "-o", ".", "--", "true"]);
    assert!(said.status == 2 && said.err.contains("`.` is a directory"), "{}", said.err);
}
