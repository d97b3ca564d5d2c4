//! What nobody has trusted yet, and what is told of it.

use crate::trust::{Home, READ_THEM};
use std::{fs, os::unix::fs::symlink, process::Command};

/// What is about names alone; and variables that are not set while somebody looks.
#[test]
fn what_will_be_granted_later_is_told_as_well() {
    let home = Home::new();
    for (text, line) in [
        ("[files]\nlist = ['${home}/work']\n", "may also list ~/work"),
        ("[network]\nconnect = ['unix:/srv/x.sock']\n", "may reach unix:/srv/x.sock"),
        ("[network]\nconnect = ['unixgram:@x*']\n", "may reach unixgram:@x*"),
        ("[network]\nnetlink = ['sock_diag']\n", "may ask for the sockets of everybody"),
        ("[env]\npass = ['DEPLOY_TOKEN']\n", "sees variables called DEPLOY_TOKEN"),
        ("[env]\npass = ['DEPLOY_*']\n", "sees variables called DEPLOY_*"),
    ] {
        home.write("repo/dewar.toml", &format!("extends = 'workspace'\n{text}"));
        let said = home.say(&["trust"]);
        assert!(said.out.contains(line), "{line}: {}{}", said.out, said.err);
    }
    home.write("repo/dewar.toml", "[env]\npass = ['*']\n");
    let said = home.say(&["trust"]);
    assert!(said.out.contains("sees variables called *TOKEN\n"), "{}{}", said.out, said.err);
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
    // Nor one that is such a file itself; which one it is, is said.
    fs::remove_file(home.path("repo/dewar.toml")).unwrap();
    symlink("../credentials.toml", home.path("repo/dewar.toml")).unwrap();
    for args in [
        &["policy", "check", "./dewar.toml"][..],
        &["policy", "show", "dewar.toml"],
        &["run", "-p", "./dewar.toml", "true"],
    ] {
        let said = home.say(args);
        assert!(said.status == 2 && !said.err.contains("wJalrXUt"), "{args:?}: {}", said.err);
        let told: String = said.err.split([' ', '\n', '│']).collect();
        let check = format!("`dewarpolicycheck{}`", home.path("credentials.toml").display());
        assert!(told.contains(&check), "{args:?}: {}", said.err);
    }
    fs::remove_file(home.path("repo/dewar.toml")).unwrap();
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
            let mut said = Command::new("timeout");
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
fn what_a_guarded_name_leads_by_leads_where_it_led() {
    let home = Home::new();
    for directory in ["scripts", "real", "sub"] {
        fs::create_dir_all(home.path("repo").join(directory)).unwrap();
    }
    let led = ["scripts/pre-commit", "real/envrc", "real/mise"];
    for (to, link) in [
        ("scripts", "sc"),
        ("../sc", ".git/hooks"),
        ("real", "cfg"),
        ("cfg/envrc", ".envrc"),
        ("sub/../real/mise", ".mise.toml"),
    ] {
        symlink(to, home.path("repo").join(link)).unwrap();
    }
    let script = "mkdir -p e/deep e/real; for it in pre-commit envrc real/mise; do echo new > e/$it; done\n\
                  for it in sc cfg; do ln -sfn e $it; rm $it; mv $it gone; ln -s e $it; mv -T e $it; done\n\
                  echo new > sub/it; mv sub gone; ln -s e/deep sub";
    for (profile, guards) in [("workspace+guarded", true), ("workspace", false)] {
        led.iter().for_each(|path| home.write(&format!("repo/{path}"), "old"));
        let _ = fs::remove_dir_all(home.path("repo/gone"));
        fs::create_dir_all(home.path("repo/sub")).unwrap();
        home.say(&["run", "--no-daemon", "-p", profile, "--", "sh", "-c", script]);
        for link in [".git/hooks/pre-commit", ".envrc", ".mise.toml"] {
            let now = fs::read_to_string(home.path("repo").join(link));
            let is_new = now.is_ok_and(|now| now == "new\n");
            assert_eq!(is_new, !guards, "{profile}: {link}");
        }
        assert!(home.path("repo/gone/it").exists(), "{profile}: the directory is written to");
    }
}

/// A profile that is named by a link, or behind one, is the same for the next run.
#[test]
fn a_run_leads_no_name_of_its_profile_elsewhere() {
    let home = Home::new();
    let kept = "extends = 'workspace'\n";
    for directory in ["real", "sub"] {
        fs::create_dir_all(home.path("repo").join(directory)).unwrap();
    }
    for (path, text) in [
        ("repo/real/p.toml", kept),
        ("repo/real/base.toml", kept),
        ("repo/real/q.toml", "extends = '../cfg/base.toml'\n"),
        ("repo/real/p.cil", "; nothing"),
        ("within.toml", "extends = 'workspace'\npropose.within = 'repo/cfg/p.toml'\n"),
    ] {
        home.write(path, text);
    }
    symlink("real", home.path("repo/cfg")).unwrap();
    symlink("real/p.toml", home.path("repo/link.toml")).unwrap();
    let script = "mkdir -p e/real e/deep; for it in p base real/p; do\n\
                  echo 'extends = \"workspace\"\nfiles.read = [\"${home}/notes.txt\"]' > e/$it.toml; done; echo new > e/p.cil\n\
                  for it in cfg link.toml; do rm $it; mv $it gone; mv -T e $it; done\n\
                  ln -sfn e cfg; ln -sf e/p.toml link.toml; mv sub gone; ln -s e/deep sub";
    let cil = ["-p", "workspace", "--cil", "cfg/p.cil"];
    for (by, path) in [
        (&["-p", "link.toml"][..], "link.toml"),
        (&["-p", "cfg/p.toml"], "cfg/p.toml"),
        (&["-p", "real/q.toml"], "cfg/base.toml"),
        (&["-p", "sub/../real/p.toml"], "sub/../real/p.toml"),
        (&["-p", "../within.toml"], "cfg/p.toml"),
        (&cil, "cfg/p.cil"),
    ] {
        let run = |script: &str| {
            let args = [&["run", "--no-daemon"][..], by, &["--", "sh", "-c", script]].concat();
            home.say(&args)
        };
        let before = fs::read_to_string(home.path("repo").join(path)).unwrap();
        run(script);
        let now = fs::read_to_string(home.path("repo").join(path));
        assert!(now.is_err() || now.is_ok_and(|now| now == before), "{by:?}");
        assert_ne!(run(READ_THEM).out, "notes", "{by:?}");
        // As it was, for the next one.
        let again = "rm -rf e gone cfg link.toml sub; mkdir sub; ln -s real cfg; ln -s real/p.toml link.toml";
        Command::new("sh").args(["-c", again]).current_dir(home.path("repo")).status().unwrap();
    }
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

#[test]
fn what_an_agents_rule_lets_out_of_its_sandbox_takes_no_options() {
    let home = Home::new();
    assert_eq!(home.say(&["init", "codex"]).status, 0);
    let rules = fs::read_to_string(home.path(".codex/rules/dewar.rules")).unwrap();
    let (_, pattern) = rules.split_once("pattern = ").unwrap();
    let pattern: Vec<String> =
        serde_json::from_str(&pattern[..=pattern.find(']').unwrap()]).unwrap();
    let fixed: Vec<&str> = pattern[1..].iter().map(String::as_str).collect();
    let call = |more: &[&str]| home.say(&[&fixed[..], more].concat());
    let (work, top) = (home.path("repo"), home.path("").display().to_string());
    let work = work.to_str().unwrap();
    let said = call(&[work, "echo fine; cat ../notes.txt"]);
    assert!(said.out == "fine\n" && said.status != 0, "{}{}", said.out, said.err);
    for more in [
        &["--enforce", "off", "--allow-degraded", "--", "cat", "../notes.txt"][..],
        &["--workspace", &top, "--", "cat", "../notes.txt"],
        &[work, "--enforce", "off", "--", "cat", "../notes.txt"],
        &[work, "cat ../notes.txt", "--enforce=off"],
        &["-p", "build", work, "cat ../notes.txt"],
        &[&top, "cat notes.txt"],
        &["..", "cat ../notes.txt"],
        &["/", "cat notes.txt"],
    ] {
        let said = call(more);
        assert!(said.status == 2 && said.out.is_empty(), "{more:?}: {}{}", said.out, said.err);
    }
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

/// The line is the link's, as none that names the file helps.
#[test]
fn what_a_guarded_link_leads_to_is_allowed_by_the_line_that_is_told() {
    let home = Home::new();
    for directory in [".vscode", "conf"] {
        fs::create_dir(home.path("repo").join(directory)).unwrap();
    }
    for (to, link) in [("../tasks.json", ".vscode/tasks.json"), ("conf", ".claude")] {
        symlink(to, home.path("repo").join(link)).unwrap();
    }
    let guarded = "extends = 'workspace+guarded'\n";
    for script in ["echo new >tasks.json", "echo new >conf/a", "rm tasks.json"] {
        home.write("repo/tasks.json", "old");
        home.write("own.toml", guarded);
        let run = || {
            let run = ["run", "--no-daemon", "-p", "../own.toml", "--", "sh", "-c", script];
            home.say(&run)
        };
        assert_ne!(run().status, 0, "{script}");
        let said = home.say(&["explain"]);
        let line = said.out.lines().find_map(|line| line.trim().strip_prefix("in a profile "));
        let line = line.unwrap_or_else(|| panic!("{script}: {}", said.out)).trim();
        home.write("own.toml", &format!("{guarded}{line}\n"));
        let again = run();
        assert_eq!(again.status, 0, "{script}, {line}: {}{}", again.err, said.out);
    }
    // The same by `dewar allow`, which wants what programs outside trust to be named in full.
    home.write("repo/tasks.json", "old");
    home.write("own.toml", guarded);
    let run = ["run", "--no-daemon", "-p", "../own.toml", "--", "sh", "-c", "echo new >tasks.json"];
    assert_ne!(home.say(&run).status, 0);
    let said = home.say(&["allow", "1"]);
    assert!(said.status == 1 && said.out.contains("name it in full"), "{}{}", said.out, said.err);
    let tasks = home.path("repo/tasks.json").display().to_string();
    let said = home.say(&["allow", &tasks]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let said = home.say(&run);
    assert_eq!(said.status, 0, "{}", said.err);
}

#[test]
fn where_no_line_of_a_profile_helps_none_is_offered() {
    let home = Home::new();
    home.write("repo/dewar.toml", "extends = 'workspace'\n");
    assert_eq!(home.say(&["trust", "--yes"]).status, 0);
    for script in ["echo >> dewar.toml", "rm dewar.toml"] {
        let said = home.say(&["run", "--no-daemon", "--", "sh", "-c", script]);
        assert_ne!(said.status, 0, "{script}");
        let said = home.say(&["explain"]);
        let is_told = said.out.contains("no line helps: this run depends on it.");
        assert!(is_told && !said.out.contains("files.write"), "{script}: {}", said.out);
        let said = home.say(&["allow", "1", "--dry-run"]);
        assert!(said.status == 1 && !said.out.contains("files.write"), "{}", said.out);
    }
}

/// As another run could, whose own profile is not this one.
#[test]
fn what_is_changed_is_what_was_trusted_however_fast_it_is_changed() {
    const PLAIN: &str = "extends = 'workspace'\n";
    let home = Home::new();
    home.write("other.txt", "other");
    home.write("repo/dewar.toml", PLAIN);
    home.trust();
    let denied = ["run", "--no-daemon", "--name", "first", "--", "sh", "-c", READ_THEM];
    assert_eq!(home.say(&denied).status, 1);
    let path = home.path("repo/dewar.toml");
    for _ in 0..25 {
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let wide = "extends = 'workspace'\nfiles.read = ['${home}/other.txt']\n";
                let next = home.path("repo/.next");
                for text in [wide, PLAIN].into_iter().cycle() {
                    let is_left = !stop.load(std::sync::atomic::Ordering::Relaxed);
                    let held = fs::read_to_string(&path).unwrap();
                    if !is_left || held.contains("notes.txt") {
                        break;
                    }
                    fs::write(&next, text).unwrap();
                    fs::rename(&next, &path).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(4));
                }
            });
            home.say(&["allow", "first", "1"]);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let said = home.run("repo", "cat ~/other.txt");
        assert_ne!(said.out, "other", "{}", fs::read_to_string(&path).unwrap());
        fs::write(&path, PLAIN).unwrap();
    }
}

/// A line that is filled up to the width of a terminal goes on where Dewar's next line would begin.
#[test]
fn no_text_of_a_profile_looks_like_a_line_of_dewars() {
    let home = Home::new();
    let spoof = format!("ok{}  may not use the network", " ".repeat(10));
    home.write(
        "repo/dewar.toml",
        &format!("description = '{spoof}'\n[env]\nset = {{ A = '{spoof}' }}\n[files]\nread = ['/srv/{spoof}']\n"),
    );
    let said = home.say(&["trust"]);
    assert_eq!(said.out.matches("\\u0020").count(), 3 * 12, "{}", said.out);
    assert!(!said.out.contains("   "), "{}", said.out);
}

#[test]
fn the_hook_of_an_agent_is_out_of_reach_of_its_commands() {
    let home = Home::new();
    let settings = home.path("repo/.claude/settings.local.json");
    let said = home.say(&["init", "claude", "-p", "workspace"]);
    assert!(said.status == 2 && said.err.contains("workspace+guarded"), "{}", said.err);
    assert!(!settings.exists());
    let said = home.say(&["init", "claude"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let written = fs::read_to_string(&settings).unwrap();
    assert!(written.contains("--profile workspace+guarded || exit 2"), "{written}");
    let attack = "echo {} > .claude/settings.local.json; rm -rf .claude; mv .claude x; echo {} > .claude/settings.json";
    home.say(&["run", "--no-daemon", "-p", "workspace+guarded", "--", "sh", "-c", attack]);
    assert_eq!(fs::read_to_string(&settings).unwrap(), written);
    assert!(!home.path("repo/.claude/settings.json").exists());
    // A relative name would be another file's wherever the agent goes.
    home.write("repo/mine.toml", "extends = 'workspace'\nfiles.guard = 'host-trusted'\n");
    let said = home.say(&["init", "claude", "-p", "./mine.toml"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let written = fs::read_to_string(&settings).unwrap();
    let profile = home.path("repo/mine.toml").display().to_string();
    assert!(written.contains(&format!("--profile {profile} || exit 2")), "{written}");
}
