//! What a newcomer is told at the end of a run, by `explain` and by `allow`: the same, and true.

use super::learn::Home;
use std::{fs, net::TcpListener, process::Command};

fn run<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--no-daemon"], words].concat()
}

#[test]
fn a_file_that_is_named_from_the_workspace_and_not_in_the_run_is_told_first_and_allowed() {
    let home = Home::new();
    let line = "files.read = [\"${home}/notes.txt\"]";
    let said = home.say(&run(&["--", "ls", "../notes.txt"]));
    assert!(said.status == 2 && said.err.contains(line), "{}", said.err);
    let said = home.say(&["explain"]).out;
    let at = |what: &str| said.find(what).unwrap_or_else(|| panic!("{said}"));
    assert!(at(line) < at("no denial was recorded") && at(line) < at("dewar learn"), "{said}");
    let said = home.say(&["allow", "--all", "--write", "own.toml"]);
    assert!(said.status == 0 && said.out.contains(line), "{}{}", said.out, said.err);
    let said = home.say(&run(&["-p", "./own.toml", "--", "cat", "../notes.txt"]));
    assert_eq!((said.status, said.out.as_str()), (0, "notes"), "{}", said.err);
}

#[test]
fn a_service_of_the_machine_that_a_run_takes_for_its_own_is_told() {
    let home = Home::new();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    let script = |port: u16| {
        format!("import socket; socket.create_connection(('localhost', {port}), timeout=5)")
    };
    let want = format!("nobody listens at port {port} of the run's own loopback, and a service of");
    for mode in ["all", "fast"] {
        let words = ["--mode", mode, "--", "/usr/bin/python3", "-c", &script(port)];
        let said = home.say(&run(&words));
        assert!(said.status == 1 && said.err.contains(&want), "{mode}: {}", said.err);
        let said = home.say(&["explain"]).out;
        assert!(said.contains(&want) && said.contains("NAME+loopback"), "{mode}: {said}");
    }
    drop(service);
    let said = home.say(&run(&["--", "/usr/bin/python3", "-c", &script(port)]));
    assert!(said.status == 1 && !said.err.contains("nobody listens"), "{}", said.err);
}

#[test]
fn what_git_makes_up_a_name_for_is_allowed_once_and_for_all() {
    let home = Home::new();
    let bare = home.path().join("bare.git");
    let git = |words: &[&str]| {
        let done = Command::new("git").args(words).current_dir(home.work()).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q", "--bare", &bare.display().to_string()]);
    git(&["init", "-q", "-b", "main", "."]);
    git(&["remote", "add", "origin", &bare.display().to_string()]);
    let profile = "extends = 'workspace'\nfiles.read = ['${home}/bare.git']\n";
    fs::write(home.work().join("dewar.toml"), profile).unwrap();
    let identity = ["-c", "user.name=me", "-c", "user.email=me@localhost"];
    for round in 0..8 {
        let message = round.to_string();
        let commit = ["commit", "-q", "--allow-empty", "-m", &message];
        git(&[&identity[..], &commit].concat());
        let said = home.say(&run(&["-p", "./dewar.toml", "--", "git", "push", "origin", "main"]));
        if said.status == 0 {
            assert!(!home.profile().contains("incoming"), "{}", home.profile());
            return;
        }
        home.say(&["allow", "--all", "--write", "dewar.toml"]);
    }
    panic!("{}", home.profile());
}

#[test]
fn explain_and_allow_say_the_same_of_what_no_line_is_proposed_for() {
    let home = Home::new();
    let key = home.path().join(".ssh/id_ed25519");
    let python = |script: &str| {
        let ran = home.say(&run(&["--", "/usr/bin/python3", "-c", script]));
        let (told, lines) = (home.say(&["explain"]).out, home.say(&["explain", "--toml"]).out);
        (ran.err, told, lines)
    };
    let secret = format!("name it in full: {}", key.display());
    for (script, want) in [
        ("import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)", "unixgram:/dev/log"),
        ("import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)", "[\"audit\"]"),
        (&format!("open('{}')", key.display()), secret.as_str()),
        ("import os; os.mknod('null', 0o20600, os.makedev(1, 3))", "no profile grants that on a"),
    ] {
        let (ran, told, lines) = python(script);
        assert!(told.contains(want) && lines.contains(want), "{script}: {ran}{told}{lines}");
        assert!(!told.contains("change that line"), "{script}: {told}");
    }
}

#[test]
fn the_line_for_a_new_name_says_that_it_is_made_first() {
    let home = Home::new();
    home.say(&run(&["--", "touch", "../newfile"]));
    let said = home.say(&["explain"]).out;
    assert!(said.contains("in a profile make `newfile` yourself, and files.write"), "{said}");
    let said = home.say(&["explain", "--toml"]).out;
    assert!(said.contains("newfile") && said.contains("make it before the run"), "{said}");
}

#[test]
fn a_program_with_a_profile_of_its_own_is_told_of_it() {
    let home = Home::new();
    // A name server would be asked for a host, and a proxy by its address.
    let script =
        "#!/usr/bin/python3\nimport socket\nsocket.create_connection(('192.0.2.1', 443), 1)\n";
    let npm = home.work().join("npm");
    fs::write(&npm, script).unwrap();
    fs::set_permissions(&npm, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let said = home.say(&run(&["--", "./npm", "ci"]));
    let want = "npm has a profile that reaches what it needs: `dewar run -p npm -- ./npm ci`";
    assert!(said.status == 1 && said.err.contains(want), "{}", said.err);
    assert!(home.say(&["explain"]).out.contains(want));
    let said = home.say(&run(&["-p", "npm", "--", "./npm", "ci"]));
    assert!(!said.err.contains("has a profile"), "{}", said.err);
}

#[test]
fn a_line_that_ends_the_loopback_of_the_run_leaves_ports_of_its_own() {
    let home = Home::new();
    let connect = "import socket; socket.create_connection(('192.0.2.1', 443), 1)";
    home.say(&run(&["--", "/usr/bin/python3", "-c", connect]));
    let said = home.say(&["allow", "--all", "--write", "own.toml"]);
    let line = "network.loopback = \"own\"\n  the run's own loopback ends with that";
    assert!(said.out.contains(line), "{}{}", said.out, said.err);
    let listen = "import socket; socket.create_server(('127.0.0.1', 0))";
    let said = home.say(&run(&["-p", "./own.toml", "--", "/usr/bin/python3", "-c", listen]));
    assert_eq!(said.status, 0, "{}", said.err);
}

#[test]
fn a_profile_that_was_written_says_how_it_is_trusted_and_none_is_written_for_nothing() {
    let home = Home::new();
    let said = home.say(&["learn", "--", "true"]);
    assert!(said.status == 0 && said.err.contains("no file was written"), "{}", said.err);
    assert!(!home.work().join("dewar.toml").exists());
    let trust = "`dewar trust` lets a plain `dewar run` here use it";
    let said = home.say(&["learn", "--", "cat", "../notes.txt"]);
    assert!(said.status == 0 && said.err.contains(trust), "{}", said.err);
    fs::remove_file(home.work().join("dewar.toml")).unwrap();
    home.say(&run(&["--", "cat", "../notes.txt"]));
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert!(said.status == 0 && said.out.contains(trust), "{}{}", said.out, said.err);
    assert_eq!(home.say(&run(&["--", "cat", "../notes.txt"])).status, 2);
    assert_eq!(home.say(&["trust", "--yes"]).status, 0);
    assert_eq!(home.say(&run(&["--", "cat", "../notes.txt"])).status, 0);
}

#[test]
fn a_limit_that_struck_is_told_in_the_place_of_what_was_not_denied() {
    let home = Home::new();
    let profile = "extends = 'workspace'\nlimits.time = '1s'\nlimits.file_size = '4K'\n";
    fs::write(home.work().join("limits.toml"), profile).unwrap();
    let said = home.say(&run(&["-p", "./limits.toml", "--", "sleep", "20"]));
    assert!(said.status == 124 && said.err.contains("`limits.time`"), "{}", said.err);
    let said = home.say(&["explain"]).out;
    assert!(said.contains("`limits.time`") && !said.contains("dewar learn"), "{said}");
    let script = "dd if=/dev/zero of=long bs=8k count=1; exit $?";
    let said = home.say(&run(&["-p", "./limits.toml", "--", "sh", "-c", script]));
    assert!(said.status == 153 && said.err.contains("`limits.file_size`"), "{}", said.err);
}

#[test]
fn a_run_beside_others_names_itself_in_its_last_line() {
    let home = Home::new();
    let denied = run(&["--", "cat", "../.config/foo/settings"]);
    home.say(&denied);
    let other = Command::new(test_support::dewar())
        .args(run(&["--", "sleep", "60"]))
        .current_dir(home.work())
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", home.path().join("state"))
        .spawn();
    let mut other = other.unwrap();
    let denied = run(&["--", "sh", "-c", "cat ../.config/foo/settings"]);
    let alone = "`dewar explain` tells why";
    // The other takes a moment to begin.
    let mut tries = (0..100).map(|_| home.say(&denied).err);
    let said = tries.find(|said| !said.contains(alone)).unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    let (_, id) = said.split_once("`dewar explain ").unwrap();
    let (id, _) = id.split_once('`').unwrap();
    let told = home.say(&["explain", id]).out;
    assert!(told.contains("cat may not"), "{told}");
}

#[test]
fn words_that_led_nowhere_lead_on() {
    let home = Home::new();
    let own = "but a loopback of the run's own";
    assert!(home.say(&["policy", "show", "workspace"]).out.contains(own));
    assert!(!home.say(&["policy", "show", "offline"]).out.contains(own));
    let site = "root = '.'\nadmin = 'run/admin.sock'\nlisten = [{ address = '127.0.0.1:0' }]\n";
    fs::write(home.work().join("web.toml"), site).unwrap();
    let said = home.say(&["serve", "--config", "web.toml"]);
    assert!(said.err.contains("run` is missing"), "{}", said.err);
    home.say(&run(&["--", "true"]));
    let said = home.say(&["explain", "1"]);
    assert!(said.err.contains("`dewar allow 1` takes numbers"), "{}", said.err);
    let said = home.say(&["revoke", "--nosuch"]);
    assert!(said.err.contains("dewar revoke [OPTIONS] [RUN] <"), "{}", said.err);
}

#[test]
fn what_is_told_of_a_command_that_failed_is_true() {
    let home = Home::new();
    let said = home.say(&run(&["--", "sh", "-c", "cat /proc/self/status > /dev/null; exit 3"]));
    assert!(said.status == 3 && !said.err.contains("not in this run"), "{}", said.err);
    let profile = "extends = 'workspace'\nlimits.memory = '700M'\nlimits.processes = 500\n";
    fs::write(home.work().join("limits.toml"), profile).unwrap();
    let bounded = |words: &[&str]| home.say(&run(words)).err.matches("without a cgroup").count();
    // Where a cgroup holds them, there is nothing to say.
    let once = bounded(&["-p", "./limits.toml", "--", "true"]);
    assert!(once <= 1 && once == bounded(&["-p", "./limits.toml", "--", "false"]), "{once}");
    assert_eq!(home.say(&["explain"]).out.matches("without a cgroup").count(), once);
    assert_eq!(bounded(&["-q", "-p", "./limits.toml", "--", "false"]), 0);
    let said = home.say(&run(&["--", "git", "ls-remote", "ssh://git@192.0.2.1/x"]));
    assert!(said.status != 0 && !said.err.contains("-p git"), "{}", said.err);
}

#[test]
fn another_program_than_outside_is_told() {
    let home = Home::new();
    let tool = home.path().join("mine/true");
    fs::create_dir(home.path().join("mine")).unwrap();
    fs::write(&tool, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", home.path().join("mine").display());
    let env = format!("PATH={path}");
    let words =
        [env.as_str(), test_support::dewar().to_str().unwrap(), "run", "--no-daemon", "--", "true"];
    let mut command = Command::new("env");
    command.args(words).current_dir(home.work()).env("HOME", home.path());
    let output = command.env("XDG_STATE_HOME", home.path().join("state")).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    let want = format!("/usr/bin/true was run: {}, which PATH has before it", tool.display());
    assert!(output.status.success() && err.contains(&want), "{err}");
}
