//! What stays denied while a profile is learned, and is never in it.

use super::daemon::is_root;
use super::learn::{Home, entries};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

#[test]
fn what_was_denied_while_a_profile_is_learned_is_never_in_it() {
    let home = Home::new();
    for name in ["project", ".foo"] {
        fs::create_dir(home.path().join(name)).unwrap();
    }
    // What a guard keeps is denied; beside it, a directory as a whole would be granted.
    let script = "cd; for name in .envrc CLAUDE.md project/.envrc .foo/.envrc; do \
                  echo x >> $name; done; mkdir .vscode; echo x > .foo/cache; chmod 700 project; \
                  for name in a b c d; do echo x > project/$name; done; \
                  echo x >> /etc/ld.so.preload; head -c 1 /dev/vda /dev/sda /dev/loop-control; true";
    let said = home.say(&["learn", "--", "bash", "-c", script]);
    let learned = home.profile();
    let granted = entries(&learned);
    for name in ["/.envrc", "CLAUDE.md", ".vscode", "/etc", "/dev"] {
        assert!(granted.iter().all(|(_, value)| !value.contains(name)), "{name}: {learned}");
    }
    for name in ["${home}/.foo/cache", "${home}/project/a"] {
        assert!(granted.iter().any(|(_, value)| value == name), "{name}: {learned}");
    }
    assert!(said.err.contains("stays denied: bash may not"), "{}", said.err);
    home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "bash", "-c", script]);
    for name in [".envrc", "CLAUDE.md", ".vscode", "project/.envrc", ".foo/.envrc"] {
        assert!(!home.path().join(name).exists(), "{name}: {learned}");
    }
}

#[test]
fn what_a_profile_names_to_be_read_is_guarded_like_the_rest() {
    let home = Home::new();
    for name in [".vim", ".cargo", "project/.vscode"] {
        fs::create_dir_all(home.path().join(name)).unwrap();
    }
    // `workspace` has all of these read.
    let named = [".vimrc", ".vim/coc-settings.json", ".cargo/config.toml"];
    let script = "cd; for name in .vimrc .vim/coc-settings.json .cargo/config.toml; do \
                  echo x > $name; done; echo x > project/.vscode/tasks.json; true";
    let made = |name: &str| home.path().join(name).exists();
    home.say(&["learn", "-o", "l.toml", "--", "bash", "-c", script]);
    let learned = fs::read_to_string(home.work().join("l.toml")).unwrap();
    assert!(!named.into_iter().any(made) && entries(&learned).len() == 1, "{learned}");

    let run = |rules: &str, script: &str| {
        let text = format!("extends = 'workspace'\nfiles.guard = 'host-trusted'\n{rules}");
        fs::write(home.work().join("p.toml"), text).unwrap();
        home.say(&["run", "--no-daemon", "-p", "./p.toml", "--", "bash", "-c", script])
    };
    let said = run("files.write = ['${home}']\n", script);
    assert!(!named.into_iter().any(made), "{}", said.err);
    // Nor does what a domain may write count for others.
    let rules = "files.write = ['${home}']\n[domains.tee]\nexec = ['/usr/bin/tee']\n\
                 files.write = ['${home}/project/.vscode', '${home}/.vimrc']\n";
    let said = run(rules, script);
    assert!(!named.into_iter().any(made) && !made("project/.vscode/tasks.json"), "{}", said.err);
    let said =
        run(rules, "echo x | tee ~/.vimrc ~/project/.vscode/tasks.json ~/.vim/coc-settings.json");
    assert!(made(".vimrc") && made("project/.vscode/tasks.json"), "{}", said.err);
    assert!(!made(".vim/coc-settings.json"), "{}", said.err);
}

#[test]
fn where_programs_outside_look_nothing_is_learned() {
    let home = Home::new();
    let script = "cd; for name in .config/autostart .local/bin .vim .mine; do mkdir -p $name; \
                  for file in notes 4711 a b c d; do echo x > $name/$file; done; done";
    home.say(&["learn", "--", "bash", "-c", script]);
    let granted = entries(&home.profile());
    let has = |value: &str| granted.iter().any(|it| *it == ("files.write".into(), value.into()));
    assert!(has("${home}/.mine/"), "{granted:?}");
    for name in [".config/autostart", ".local/bin", ".vim"] {
        assert!(!granted.iter().any(|(_, value)| value.contains(name)), "{granted:?}");
        assert!(!home.path().join(name).join("notes").exists(), "{name}");
    }
    let alone = "cd; for name in .bash_aliases .gitconfig .zlogout; do echo x > $name; done";
    home.say(&["learn", "--merge", "--", "bash", "-c", alone]);
    for name in [".bash_aliases", ".gitconfig", ".zlogout"] {
        assert!(!home.profile().contains(name) && !home.path().join(name).exists(), "{name}");
    }
    let plant = "cd; for name in .config/autostart .local/bin .vim; do echo x > $name/more; done";
    home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "bash", "-c", plant]);
    for name in [".config/autostart", ".local/bin", ".vim"] {
        assert!(!home.path().join(name).join("more").exists(), "{granted:?}");
    }
}

#[test]
fn a_workspace_is_learned_from_where_the_home_lies_in_a_directory_that_runs_have_for_themselves() {
    let home = Home::new_in("/tmp");
    let script = "pwd; cat input; cat ~/.ssh/id_ed25519; echo x > out";
    let learn = ["learn", "-o", "l.toml", "--", "sh", "-c", script];
    let run = ["run", "--no-daemon", "-p", "./l.toml", "--", "sh", "-c", script];
    for words in [&learn[..], &run] {
        let said = home.say(words);
        let want = format!("{}\ninput", home.work().display());
        assert_eq!((said.status, said.out), (0, want), "{}", said.err);
    }
    let learned = entries(&fs::read_to_string(home.work().join("l.toml")).unwrap());
    assert!(learned.iter().all(|(_, value)| !value.contains(".ssh")), "{learned:?}");
}

#[test]
fn a_secret_made_later_where_a_directory_was_learned_is_kept_if_a_profile_names_it() {
    let home = Home::new();
    for name in [".cargo", ".foo"] {
        fs::create_dir(home.path().join(name)).unwrap();
    }
    let uses = "cd; echo x > .cargo/mine; echo x > .foo/cache";
    home.say(&["learn", "--", "bash", "-c", uses]);
    let granted = entries(&home.profile());
    let has = |value: &str| granted.iter().any(|(_, it)| it == value);
    // `workspace` names a file in the one, which is not there yet.
    assert!(has("${home}/.cargo/mine") && has("${home}/.foo/"), "{granted:?}");
    fs::create_dir(home.path().join(".foo/keys")).unwrap();
    for name in [".cargo/credentials", ".npmrc", ".foo/.npmrc", ".foo/keys/id_rsa"] {
        fs::write(home.path().join(name), "secret\n").unwrap();
    }
    let looks = "cd; cat .cargo/credentials .npmrc; echo; cat .foo/.npmrc .foo/keys/id_rsa";
    let run =
        |profile: &str| home.say(&["run", "--no-daemon", "-p", profile, "--", "bash", "-c", looks]);
    // Of what only its name tells, as SECURITY.md says, nothing is kept.
    assert_eq!(run("./dewar.toml").out, "\nsecret\nsecret\n");
    let hide =
        "extends = './dewar.toml'\nfiles.hide = ['${home}/.foo/.npmrc', '${home}/.foo/**/id_*']\n";
    fs::write(home.work().join("p.toml"), hide).unwrap();
    assert_eq!(run("./p.toml").out, "\n");
}

#[test]
fn a_secret_whose_name_no_pattern_can_say_is_kept_while_a_profile_is_learned() {
    let home = Home::new();
    for name in [&b"\x1b.pem"[..], b"my\"key.pem", b"\xc2\x85.pem", b"caf\xe9.pem"] {
        fs::write(home.path().join(OsStr::from_bytes(name)), "secret\n").unwrap();
        let said = home.say(&["learn", "--", "sh", "-c", "cat ~/*.pem; echo learned"]);
        assert_eq!((said.status, said.out.trim()), (0, "learned"), "{name:?}: {}", said.err);
        let granted = entries(&home.profile());
        assert!(granted.iter().all(|(_, value)| !value.contains("pem")), "{name:?}: {granted:?}");
        fs::remove_file(home.work().join("dewar.toml")).unwrap();
    }
}

#[test]
fn a_file_system_without_a_server_holds_up_no_learning() {
    if !is_root() {
        eprintln!("note: a file system that has lost its server is root's to leave mounted");
        return;
    }
    let home = Home::new_in("/home");
    let dead = home.path().join("dead");
    fs::create_dir(&dead).expect("create a directory");
    // The server is the shell, which ends at once.
    let options = "fd=3,rootmode=40000,user_id=0,group_id=0";
    let script = format!("exec mount -i -t fuse dead \"$1\" -o {options} 3<>/dev/fuse");
    let mounted = Command::new("sh").args(["-c", &script, "sh"]).arg(&dead).status();
    assert!(mounted.expect("start a shell").success(), "it is not mounted");
    let said = home.say(&["learn", "--", "cat", "input"]);
    let unmounted = Command::new("umount").arg("-l").arg(&dead).status();
    assert!(unmounted.expect("start `umount`").success(), "it stays mounted");
    assert_eq!((said.status, said.out.as_str()), (0, "input"), "{}", said.err);
}
