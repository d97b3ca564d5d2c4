//! A run inside of a run, as whoever starts it sees it.

use crate::learn::{Home, Said};
use std::{fs, os::unix::fs::symlink, path::Path};

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
