//! A run inside of a run, as whoever starts it sees it.

use crate::{
    ask::{self, text},
    learn::{Home, Said},
};
use std::{fs, os::unix::fs::symlink, path::Path, process::Stdio};

/// Runs a script under `workspace`, with `dewar` in its `PATH`.
fn around(home: &Home, script: &str) -> Said {
    let program = test_support::dewar();
    let directory = Path::new(&program).parent().unwrap().display().to_string();
    let profile = home.path().join("around.toml");
    fs::write(&profile, format!("extends = 'workspace'\nfiles.exec = ['{directory}']\n")).unwrap();
    let script = format!("PATH={directory}:$PATH; {script}");
    let profile = profile.display().to_string();
    home.say(&["run", "-q", "--no-daemon", "-p", &profile, "--", "sh", "-c", &script])
}

#[test]
fn a_project_s_profile_is_not_used_unasked() {
    let home = Home::new();
    fs::create_dir(home.work().join("clone")).unwrap();
    // As what was built there would leave it.
    fs::write(home.work().join("clone/dewar.toml"), "extends = 'open'\n").unwrap();
    let said = around(&home, "cd clone; dewar run -q -- cat ../input");
    assert!(said.status != 0 && said.out.is_empty(), "{}{}", said.out, said.err);
    assert!(said.err.contains("clone/dewar.toml is not used unasked inside"), "{}", said.err);
    for profile in ["./dewar.toml", "workspace"] {
        let script = format!("cd clone; dewar run -q -p {profile} -- cat dewar.toml");
        let said = around(&home, &script);
        assert_eq!((said.status, said.out.as_str()), (0, "extends = 'open'\n"), "{}", said.err);
    }
}

#[test]
fn what_a_guarded_link_leads_to_is_guarded() {
    let home = Home::new();
    fs::create_dir(home.work().join("real")).unwrap();
    fs::write(home.work().join("real/envrc"), "plain").unwrap();
    symlink("real/envrc", home.work().join(".envrc")).unwrap();
    let said = around(&home, "dewar run -q -p agent -- sh -c 'echo > real/own; echo > real/envrc'");
    assert!(said.status != 0 && home.work().join("real/own").exists(), "{}", said.err);
    assert_eq!(fs::read_to_string(home.work().join("real/envrc")).unwrap(), "plain");
}

/// Where the run around decides no datagrams, none is made; where it does, the profile is asked.
#[test]
fn datagrams_reach_nothing_that_the_profile_denies() {
    let home = Home::new();
    let send = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in (53, 9999):
    s.sendto(b'x', ('127.0.0.1', port))";
    fs::write(home.work().join("send.py"), send).unwrap();
    let said = around(&home, "/usr/bin/python3 send.py");
    assert_eq!(said.status, 0, "the run around may: {}", said.err);
    let said = around(&home, "dewar run -q -p agent -- /usr/bin/python3 send.py");
    assert!(said.status != 0 && said.err.contains("PermissionError"), "{}", said.err);
    let told = home.say(&["explain"]);
    assert!(told.out.contains("udp_socket") || told.out.contains("127.0.0.1"), "{}", told.out);
}

/// Its caller hears the end of what the command has left, and no word of it.
#[test]
fn what_the_command_leaves_ends_with_it() {
    let home = Home::new();
    let leaves = "setsid sh -c \"sleep 20; echo late\" & (setsid dewar run -q -p agent -- sh -c \"sleep 20; echo later\") & echo done";
    let script = format!("said=$(dewar run -q -p workspace -- sh -c '{leaves}'); echo \"$said\"");
    let said = around(&home, &script);
    assert_eq!((said.status, said.out.as_str()), (0, "done\n"), "{}", said.err);
}

/// A process whose first thread has ended looks like one that is over, and its others go on.
#[test]
fn what_the_command_leaves_ends_with_it_though_its_first_thread_has() {
    let home = Home::new();
    let leaves = "import ctypes, os, threading, time
def go_on():
    for _ in range(100):
        time.sleep(0.05)
        open('ticks', 'a').write('x')
if os.fork():
    os._exit(0)
threading.Thread(target=go_on).start()
open('left', 'w')
ctypes.CDLL(None).syscall(60, 0)";
    fs::write(home.work().join("leaves.py"), leaves).unwrap();
    let script = "touch ticks; dewar run -q -p workspace -- sh -c '/usr/bin/python3 leaves.py; until [ -e left ]; do sleep 0.02; done'; \
                  sleep 0.3; cp ticks before; sleep 0.6; cmp ticks before";
    let said = around(&home, script);
    assert_eq!((said.status, said.out.as_str()), (0, ""), "{}", said.err);
}

/// What has been given to the run since it was started is no part of the profile that is asked for.
#[test]
fn the_very_profile_means_what_it_says_after_a_grant() {
    let home = ask::Home::new();
    let dewar = test_support::dewar();
    let directory = dewar.parent().unwrap().display().to_string();
    let program = dewar.display();
    let profile = home.path().join("work/around.toml");
    let lines = format!("extends = 'workspace'\nfiles.exec = ['{directory}']\n");
    fs::write(&profile, lines).unwrap();
    let notes = home.path().join("notes.txt").display().to_string();
    let profile = profile.display().to_string();
    let script = format!(
        "{program} run -q -p {profile} -- true || exit 1; until cat {notes} 2>/dev/null; do sleep 0.1; done; \
         {program} run -q -p {profile} -- cat {notes}"
    );
    let options = ["run", "-q", "--no-daemon", "--name", "it", "--ask"];
    let args = [&options[..], &["-p", &profile, "--", "sh", "-c", &script]].concat();
    let run = home.command(&[], &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    home.say_soon(&["allow", "it", &notes, "--once"], "complete after");
    let out = run.unwrap().wait_with_output().unwrap();
    let (told, why) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(told, "these are notes", "{why}");
    assert_ne!(out.status.code(), Some(0), "{why}");
}
