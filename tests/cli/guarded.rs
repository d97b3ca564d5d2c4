//! Names that programs outside trust: what `allow` and `explain` offer for one that was refused.

use super::learn::Home;
use std::fs;

/// A home whose workspace is a repository.
fn home() -> Home {
    let home = Home::new();
    let work = home.work().display().to_string();
    let made = std::process::Command::new("git").args(["init", "-q", &work]).status().unwrap();
    assert!(made.success());
    home
}

/// What is made under the profile that was written, of what a guard keeps.
fn made_under_profile(home: &Home, names: &[&str]) -> Vec<String> {
    let made = |name: &&&str| {
        let script = format!("mkdir -p \"$(dirname {name})\" && echo planted > {name}");
        home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "sh", "-c", &script]).status
            == 0
    };
    names.iter().filter(made).map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_lock_of_git_is_let_go_with_the_file_it_becomes_and_nothing_else() {
    for base in ["workspace+guarded", "agent"] {
        let home = home();
        let config = ["git", "config", "user.name", "somebody"];
        let run = |profile| {
            home.say(&[&["run", "--no-daemon", "-p", profile, "--"], &config[..]].concat())
        };
        assert_ne!(run(base).status, 0, "{base}");
        let lock = home.work().join(".git/config.lock").display().to_string();
        let explained = home.say(&["explain"]).out;
        let said = home.say(&["allow", &lock, "--write", "dewar.toml"]);
        assert_eq!(said.status, 0, "{base}: {}{}", said.out, said.err);
        let line = "files.unguarded = [\"${workspace}/.git/config{,.lock}\"]";
        for told in [&explained, &said.out] {
            assert!(told.contains(line) && told.contains("for Git"), "{base}: {told}");
        }
        assert!(said.out.contains("UNGUARDED: "), "{}", said.out);
        let said = run("./dewar.toml");
        assert_eq!(said.status, 0, "{base}: {}{}", said.err, home.profile());
        let others =
            ["AGENTS.md", ".envrc", ".git/hooks/pre-commit", ".npmrc", ".vscode/tasks.json"];
        assert_eq!(made_under_profile(&home, &others), [""; 0], "{base}: {}", home.profile());
    }
}

#[test]
fn what_programs_outside_trust_is_named_in_full_whatever_keeps_it() {
    for base in ["workspace+guarded", "agent"] {
        let home = Home::new();
        let init = ["run", "--no-daemon", "-p", base, "--", "git", "init", "-q", "."];
        assert_ne!(home.say(&init).status, 0, "{base}");
        let explained = home.say(&["explain"]).out;
        for part in ["outside, it would be for Git", "clone into $TMPDIR"] {
            assert!(explained.contains(part), "{base}: {explained}");
        }
        let said = home.say(&["allow", "1", "--write", "dewar.toml"]);
        assert!(said.status == 1 && said.out.contains("name it in full"), "{base}: {}", said.out);
        assert!(said.out.contains("clone into $TMPDIR"), "{base}: {}", said.out);
        assert!(!home.work().join("dewar.toml").exists(), "{base}");
        let hooks = home.work().join(".git/hooks").display().to_string();
        let said = home.say(&["allow", &hooks, "--write", "dewar.toml"]);
        assert!(said.status == 0 && said.out.contains("UNGUARDED: "), "{base}: {}", said.out);
        let made =
            made_under_profile(&home, &[".git/hooks/pre-commit", "AGENTS.md", ".git/info/x"]);
        assert_eq!(made, [".git/hooks/pre-commit"], "{base}: {}", home.profile());
    }
}

#[test]
fn a_directory_that_would_be_a_repository_is_named_if_it_is_not_the_workspace() {
    let home = Home::new();
    let bare =
        ["run", "--no-daemon", "-p", "workspace+guarded", "--", "git", "init", "-q", "--bare"];
    for (place, status) in [("sub", 0), (".", 1)] {
        assert_ne!(home.say(&[&bare[..], &[place]].concat()).status, 0);
        let record = home.say(&["explain", "--json"]).out;
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        let object = record["denials"][0]["object"].as_str().unwrap().to_owned();
        let said = home.say(&["allow", &object, "--write", "dewar.toml"]);
        assert_eq!(said.status, status, "{object}: {}{}", said.out, said.err);
        let told = match status {
            0 => "UNGUARDED: all in ${workspace}/sub that programs outside trust",
            _ => "make the repository outside of the run",
        };
        assert!(said.out.contains(told), "{object}: {}", said.out);
        assert!(
            fs::read_to_string(home.work().join("dewar.toml"))
                .is_ok_and(|it| !it.contains("${workspace}\""))
        );
        fs::remove_dir_all(home.work().join(place).join("refs")).ok();
    }
}

#[test]
fn what_gits_configuration_names_is_kept_or_reported() {
    let home = home();
    let work = home.work();
    let config = fs::read_to_string(work.join(".git/config")).unwrap();
    let more = "[include]\n\tpath = ../.gitconfig\n[hook \"lint\"]\n\tevent = pre-commit\n\tcommand = scripts/lint --all\n";
    fs::write(work.join(".git/config"), config + more).unwrap();
    fs::write(work.join(".gitconfig"), "[core]\n\t; C:\\x\\\n\thooksPath = my/hooks\n").unwrap();
    fs::create_dir(work.join("scripts")).unwrap();
    fs::write(work.join("scripts/lint"), "#!/bin/sh\n").unwrap();
    let plant = |profile: &str, name: &str| {
        let script = format!("mkdir -p $(dirname {name}); echo '# planted' >> {name}");
        home.say(&["run", "--no-daemon", "-p", profile, "--", "sh", "-c", &script])
    };
    for name in [".gitconfig", "my/hooks/pre-commit"] {
        let said = plant("workspace+guarded", name);
        assert_ne!(said.status, 0, "{name}: {}", said.err);
    }
    let said = plant("workspace+guarded", "scripts/lint");
    assert!(said.status == 0 && said.err.contains("scripts/lint"), "{}", said.err);
    let reported = home.say(&["report"]);
    assert!(reported.out.contains("scripts/lint"), "{}{}", reported.out, reported.err);
    // Who names the file means it, and nothing else.
    let denied = work.join(".gitconfig").display().to_string();
    plant("workspace+guarded", ".gitconfig");
    let said = home.say(&["allow", &denied, "--write", "dewar.toml"]);
    assert!(said.status == 0 && said.out.contains("UNGUARDED"), "{}{}", said.out, said.err);
    let names = ["my/hooks/pre-commit", ".git/config", ".gitconfig"];
    assert_eq!(made_under_profile(&home, &names), [".gitconfig"], "{}", home.profile());
}

#[test]
fn what_programs_outside_execute_in_a_home_is_named_in_full() {
    let home = Home::new();
    for directory in [".local/bin", ".config/kitty", ".config/systemd/user", "proj/.git/hooks"] {
        fs::create_dir_all(home.path().join(directory)).unwrap();
    }
    let names = [
        ".local/bin/ls",
        ".config/kitty/kitty.conf",
        ".config/systemd/user/sync.service",
        ".bash_aliases",
        ".xsessionrc",
    ];
    for name in names {
        let script = format!("echo evil > ~/{name}");
        home.say(&["run", "--no-daemon", "-p", "workspace", "--", "sh", "-c", &script]);
        let whole = home.path().join(name).display().to_string();
        let explained = home.say(&["explain"]).out;
        assert!(explained.contains("outside, it would be for"), "{name}: {explained}");
        let directory = whole.rsplit_once('/').unwrap().0;
        assert!(!explained.contains(&format!("{directory}\"]")), "{name}: {explained}");
        let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
        assert!(said.status == 1 && said.out.contains("name it in full"), "{name}: {}", said.out);
        assert!(!home.work().join("dewar.toml").exists(), "{name}");
        let said = home.say(&["allow", &whole, "--write", "own.toml"]);
        assert!(said.status == 0 && said.out.contains("UNGUARDED: "), "{name}: {}", said.out);
        assert!(!said.out.contains("or grant"), "{name}: {}", said.out);
    }
    // A directory with a repository in it is not offered for another name.
    let script = "echo x > ~/proj/Makefile";
    home.say(&["run", "--no-daemon", "-p", "workspace", "--", "sh", "-c", script]);
    let explained = home.say(&["explain"]).out;
    assert!(explained.contains("proj/Makefile\"]"), "{explained}");
    assert!(!explained.contains("proj\"]"), "{explained}");
}

#[test]
fn dewars_own_places_are_its_own_wherever_a_variable_leads() {
    let home = Home::new();
    let state = home.path().join(".local/state");
    fs::create_dir_all(state.join("dewar/trust")).unwrap();
    let text =
        "extends = 'workspace'\nfiles.write = ['${home}/.local/state/', '${home}/.cache/']\n";
    fs::write(home.path().join("own.toml"), text).unwrap();
    let script = "echo x > ~/.local/state/other; echo x > ~/.local/state/dewar/trust/x.json; \
                  mkdir -p ~/.cache/dewar ~/.local/state/dewar-propose";
    let said = home.say(&["run", "--no-daemon", "-p", "../own.toml", "--", "sh", "-c", script]);
    assert!(state.join("other").exists(), "{}", said.err);
    for kept in [".local/state/dewar/trust/x.json", ".cache/dewar", ".local/state/dewar-propose"] {
        assert!(!home.path().join(kept).exists(), "{kept}: {}", said.err);
    }
}
