//! What `explain` and `allow` suggest, followed to the letter: it is true, and the command works.

use super::learn::Home;
use std::fs;

fn home() -> Home {
    let home = Home::new();
    for (path, text) in [("docs/a", "content"), ("docs/deep/b", ""), ("docs/kept", "secret")] {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    home
}

/// Standard output and error of a shell's script under the profile that was written.
fn under_profile(home: &Home, script: &str) -> String {
    let said = home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "sh", "-c", script]);
    format!("{}{}", said.out, said.err)
}

#[test]
fn a_directory_that_may_be_listed_shows_its_names_also_where_all_around_it_is_absent() {
    let home = home();
    home.say(&["run", "--no-daemon", "--", "sh", "-c", "echo ~/docs/*"]);
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert!(said.out.contains("files.list = [\"${home}/docs\"]"), "{}{}", said.out, said.err);
    assert_eq!(under_profile(&home, "ls ~/docs"), "a\ndeep\nkept\n");
    for script in ["cat ~/docs/a", "ls ~/docs/deep", "cat ~/notes.txt", "echo x > ~/docs/new"] {
        let said = under_profile(&home, script);
        assert!(said.contains("denied once"), "{script}: {said}");
        assert!(!said.contains("content"), "{script}: {said}");
    }
    let hidden = home.profile() + "hide = [\"${home}/docs/kept\"]\n";
    fs::write(home.work().join("dewar.toml"), hidden).unwrap();
    let said = under_profile(&home, "cat ~/docs/kept; ls ~/docs");
    assert!(said.contains("No such file") && !said.contains("secret"), "{said}");
    assert!(said.contains("\ndeep\n"), "{said}");
}

#[test]
fn what_may_not_be_taken_out_of_a_directory_is_allowed_by_writing_it() {
    let home = home();
    let profile =
        "extends = 'workspace'\nfiles.list = ['${home}/docs']\nfiles.read = ['${home}/docs/**']\n";
    fs::write(home.work().join("dewar.toml"), profile).unwrap();
    let said = under_profile(&home, "rm ~/docs/a");
    assert!(said.contains("rm may not remove_name"), "{said}");
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert!(said.out.contains("files.write = [\"${home}/docs\"]"), "{}{}", said.out, said.err);
    assert_eq!(under_profile(&home, "rm ~/docs/a"), "");
    assert!(!home.path().join("docs/a").exists());
}

#[test]
fn no_line_is_suggested_for_a_name_that_no_profile_can_hold() {
    let home = home();
    fs::write(home.path().join("docs/q\"uo"), "").unwrap();
    home.say(&["run", "--no-daemon", "--", "sh", "-c", "cat ~/docs/q*; cat '../docs/q\"uo'"]);
    let said = home.say(&["explain", "--all"]);
    assert!(said.out.contains("no line names it"), "{}", said.out);
    assert!(!said.out.contains("\\\"uo"), "{}", said.out);
    let said = home.say(&["allow", "--all", "--dry-run"]);
    assert!(said.out.contains("no line names it"), "{}{}", said.out, said.err);
}

#[test]
fn a_file_that_is_not_there_has_to_be_made_before_it_is_granted_alone() {
    let home = home();
    fs::create_dir(home.path().join("out")).unwrap();
    let script = "echo x > ~/out/made";
    home.say(&["run", "--no-daemon", "--", "sh", "-c", script]);
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert!(said.out.contains("make it before the run, or grant ${home}/out"), "{}", said.out);
    fs::write(home.path().join("out/made"), "").unwrap();
    assert_eq!(under_profile(&home, script), "");
    assert_eq!(fs::read_to_string(home.path().join("out/made")).unwrap(), "x\n");
}

#[test]
fn a_command_that_failed_without_a_denial_is_led_to_learn() {
    let home = home();
    home.say(&["run", "--no-daemon", "--", "sh", "-c", "test -e ~/docs/a"]);
    let said = home.say(&["explain"]);
    assert!(said.out.contains("`dewar learn -- COMMAND`"), "{}", said.out);
    assert!(said.out.contains("-p NAME+loopback"), "{}", said.out);
    home.say(&["run", "--no-daemon", "--", "true"]);
    assert!(!home.say(&["explain"]).out.contains("dewar learn"));
}
