//! What nobody has trusted yet, and what is told of it.

use crate::trust::Home;
use std::{fs, os::unix::fs::symlink};

/// What is about names alone; and variables that are not set while somebody looks.
#[test]
fn what_will_be_granted_later_is_told_as_well() {
    let home = Home::new();
    for (text, line) in [
        ("[files]\nlist = ['${home}/work']\n", "may also list ~/work"),
        ("[env]\npass = ['DEPLOY_TOKEN']\n", "sees variables called DEPLOY_TOKEN"),
        ("[env]\npass = ['DEPLOY_*']\n", "sees variables called DEPLOY_*"),
    ] {
        home.write("repo/dewar.toml", &format!("extends = 'workspace'\n{text}"));
        let said = home.say(&["trust"]);
        assert!(said.out.contains(line), "{line}: {}{}", said.out, said.err);
    }
    home.write("repo/dewar.toml", "[env]\npass = ['*']\n");
    let said = home.say(&["trust"]);
    assert!(said.out.contains("sees variables called *_TOKEN\n"), "{}{}", said.out, said.err);
}

#[test]
fn a_profile_that_nobody_trusts_quotes_no_file_of_the_users() {
    let home = Home::new();
    for (secret, text) in [
        ("credentials", "[default]\nsecret_access_key = wJalrXUt\n"),
        ("credentials.toml", "[registry]\ntoken = 'wJalrXUt'\n"),
        ("key.toml", "wJalrXUt = 1\n"),
    ] {
        home.write(secret, text);
        let _ = fs::remove_file(home.path("repo/link.toml"));
        symlink(home.path(secret), home.path("repo/link.toml")).unwrap();
        let (whole, near) = (home.path(secret).display().to_string(), format!("../{secret}"));
        for leads in [&*whole, &*near, "./link.toml", "workspace+./link.toml"] {
            for says in [format!("extends = '{leads}'"), format!("[propose]\nwithin = '{leads}'")] {
                home.write("repo/dewar.toml", &says);
                for args in [&["run", "true"][..], &["trust"], &["policy", "check", "dewar.toml"]] {
                    let said = home.say(args);
                    let told = format!("{}{}", said.out, said.err);
                    assert_ne!(said.status, 0, "{args:?}: {told}");
                    assert!(!told.contains("wJalrXUt"), "{args:?} {says}: {told}");
                    let words: Vec<_> =
                        told.split([' ', '\n', '│']).filter(|it| !it.is_empty()).collect();
                    let is_told = words.join(" ").contains("it is no profile");
                    assert!(is_told, "{args:?} {says}: {told}");
                }
            }
        }
    }
    // What lies beside it is the project's, and told as before.
    home.write("repo/sub/base.toml", "reed = 1\n");
    home.write("repo/dewar.toml", "extends = './sub/base.toml'\n");
    let said = home.say(&["trust"]);
    assert!(said.err.contains("unknown key `reed`"), "{}", said.err);
}

#[test]
fn what_a_project_calls_a_profile_and_is_none_holds_nobody_up() {
    let home = Home::new();
    for kind in ["pipe", "long"] {
        let path = home.path("repo/dewar.toml");
        let _ = fs::remove_file(&path);
        match kind {
            "pipe" => rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap(),
            _ => fs::File::create(&path).unwrap().set_len(1 << 40).unwrap(),
        }
        for args in [
            &["init"][..],
            &["learn", "-o", "dewar.toml", "--", "true"],
            &["trust"],
            &["run", "true"],
        ] {
            let mut said = std::process::Command::new("timeout");
            said.arg("20").arg(test_support::dewar()).args(args).current_dir(home.path("repo"));
            said.env("HOME", home.path("")).env("XDG_STATE_HOME", home.path("state"));
            let output = said.output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{kind} {args:?}: {told}");
        }
    }
}

#[test]
fn what_a_guarded_name_leads_to_is_guarded_like_it() {
    let home = Home::new();
    for directory in ["conf", "hooks", ".vscode", ".git/refs"] {
        fs::create_dir_all(home.path("repo").join(directory)).unwrap();
    }
    home.write("repo/tasks.json", "old");
    for (to, link) in [
        ("conf", ".claude"),
        ("../hooks", ".git/hooks"),
        ("../tasks.json", ".vscode/tasks.json"),
        ("later", ".envrc"),
        ("free", "link"),
    ] {
        symlink(to, home.path("repo").join(link)).unwrap();
    }
    let script = "for name in .claude/a conf/a .git/hooks/b hooks/b .vscode/tasks.json tasks.json .envrc later link; do\n\
                  echo new > $name && echo wrote $name\n\
                  done\n\
                  mv conf c; mv hooks h; mv tasks.json t; rm .claude; echo done";
    let run =
        |profile: &str| home.say(&["run", "--no-daemon", "-p", profile, "--", "sh", "-c", script]);
    let said = run("workspace+guarded");
    assert_eq!(said.out, "wrote link\ndone\n".replace("\\\n", "\n"), "{}", said.err);
    assert_eq!(fs::read_to_string(home.path("repo/tasks.json")).unwrap(), "old");
    let said = run("workspace");
    assert!(said.out.starts_with("wrote .claude/a\nwrote conf/a\n"), "{}{}", said.out, said.err);
}

#[test]
fn an_agent_is_not_set_up_by_a_link_of_the_projects() {
    let home = Home::new();
    fs::create_dir(home.path("other")).unwrap();
    symlink("../other", home.path("repo/.claude")).unwrap();
    let said = home.say(&["init", "claude"]);
    assert!(said.status == 2 && said.err.contains("leads to"), "{}{}", said.out, said.err);
    assert!(fs::read_dir(home.path("other")).unwrap().next().is_none());
}

/// A policy that is compiled once more, for what programs propose or somebody gives, keeps it so.
#[test]
fn a_run_shades_its_profile_in_no_policy_that_it_gets() {
    let home = Home::new();
    home.write("repo/dewar.toml", "extends = 'workspace'\n[propose]\n");
    let said = home.say(&["trust", "--yes"]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let run = ["run", "--no-daemon", "--", "sh", "-c", "mkdir .git .hg; ls -A"];
    let said = home.say_in("repo/sub/deep", &run);
    assert_eq!(said.out, "", "{}", said.err);
}
