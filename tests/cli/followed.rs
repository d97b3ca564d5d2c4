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
