//! What projects and programs try so that a person grants more than is meant.

use crate::learn::Home;
use std::fs;

/// A list of a profile.
fn list(profile: &str, table: &str, key: &str) -> Vec<String> {
    let profile: toml::Table = profile.parse().expect(profile);
    let list = profile.get(table).and_then(|table| table.get(key)).and_then(|it| it.as_array());
    let text = |value: &toml::Value| value.as_str().expect("a string").to_owned();
    list.into_iter().flatten().map(text).collect()
}

#[test]
fn no_program_gets_a_line_into_a_profile_by_its_name() {
    let home = Home::new();
    let name = "x\n]\nwrite = [\"${home}\"]\nhide = [ #";
    let script = "cp /bin/cat \"$0\"; \"./$0\" ~/notes.txt";
    home.say(&["run", "--no-daemon", "--", "sh", "-c", script, name]);
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let written = home.profile();
    assert_eq!(list(&written, "files", "read"), ["${home}/notes.txt"], "{written}");
    assert!(list(&written, "files", "write").is_empty(), "{written}");
    assert!(!written.lines().any(|line| line.starts_with("hide")), "{written}");
    let said = home.say(&["explain", "--toml"]);
    assert!(said.out.parse::<toml::Table>().is_ok(), "{}", said.out);
    assert!(list(&said.out, "files", "write").is_empty(), "{}", said.out);
}

#[test]
fn learning_runs_nothing_that_another_flag_says_not_to_run() {
    let home = Home::new();
    for flag in ["--dry-run", "--ask", "--audit=x", "--without=mount"] {
        let said = home.say(&["run", "--learn", flag, "--", "touch", "started"]);
        assert!(
            said.status == 2 && said.err.contains("cannot be used with"),
            "{flag}: {}",
            said.err
        );
        assert!(!home.work().join("started").exists(), "{flag}");
    }
}

#[test]
fn nothing_is_learned_above_a_projects_profile_that_nobody_has_trusted() {
    let home = Home::new();
    // It hides nothing, so that everything would be granted.
    let wide = "[files]\nread = ['/']\nwrite = ['${workspace}']\nexec = ['/']\n[network]\nconnect = ['*:*']\n";
    fs::write(home.work().join("dewar.toml"), wide).unwrap();
    let read = ["--", "sh", "-c", "touch started; cat ~/.ssh/id_ed25519"];
    for learn in [
        &["run", "--learn"][..],
        &["learn", "--merge"],
        &["learn", "--merge", "-o", "./dewar.toml"],
    ] {
        let said = home.say(&[learn, &read].concat());
        assert!(said.status == 2 && said.err.contains("you have not trusted it"), "{}", said.err);
        assert!(!home.work().join("started").exists() && said.out.is_empty(), "{learn:?}");
    }
    let said = home.say(&[&["run", "--learn", "-p", "agent"][..], &read].concat());
    assert!(said.status == 2 && said.err.contains("would mean nothing"), "{}", said.err);
    assert_eq!(home.profile(), wide);

    // What Dewar has made itself is the user's, until somebody else changes it.
    let home = Home::new();
    assert_eq!(home.say(&["learn", "--", "true"]).status, 0);
    let said = home.say(&["run", "--learn", "--", "cat", "../notes.txt"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(list(&home.profile(), "files", "read"), ["${home}/notes.txt"]);
    fs::write(home.work().join("dewar.toml"), home.profile() + "# changed\n").unwrap();
    assert_eq!(home.say(&["run", "--learn", "--", "true"]).status, 2);
}

#[test]
fn whatever_is_learned_above_secrets_stay_denied() {
    let home = Home::new();
    let cat = fs::canonicalize("/bin/cat").unwrap();
    let low = home.work().join("low");
    fs::copy(cat, low).unwrap();
    let wide = "[files]\nread = ['/']\nwrite = ['${workspace}']\nexec = ['/']\n[env]\npass = ['*']\n\
                [domains.low]\nexec = ['${workspace}/low']\ninherit = false\nfiles.exec = ['/']\n";
    fs::write(home.path().join("wide.toml"), wide).unwrap();
    for program in ["cat", "./low"] {
        let script = format!("{program} ~/notes.txt ~/.ssh/id_ed25519 /etc/shadow");
        let said = home.say(&["learn", "--force", "-p", "../wide.toml", "--", "sh", "-c", &script]);
        assert_eq!(said.out, "notes", "{program}: {}", said.err);
    }
}
