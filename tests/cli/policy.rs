//! `dewar policy`.

use super::{dewar, dewar_in};
use std::fs;

#[test]
fn shipped_profiles_are_listed_with_what_they_are_for() {
    let said = dewar(&["policy", "list"]);
    for name in ["workspace", "build", "agent", "readonly", "offline"] {
        let line = said.out.lines().find(|line| line.starts_with(name)).expect(name);
        assert!(line.len() > name.len() + 10, "{line}");
    }
    assert_eq!(said.status, 0);
}

#[test]
fn the_policy_of_a_profile_is_printed_in_cil_without_asking_a_name_server() {
    let said = dewar(&["policy", "show", "--cil", "agent"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    assert!(said.out.contains("(allow main_t usr_t (file (execute execute_no_trans)))"));
    assert!(said.out.contains("; github.com has no address (yet)"));
}

#[test]
fn each_rule_of_the_policy_can_be_printed_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), "[files]\nread = ['/srv']\n").unwrap();
    let said = dewar_in(dir.path(), &["policy", "show", "--cil", "--origins", "x.toml"]);
    let line = said.out.lines().find(|line| line.starts_with("(allow main_t srv_t (file (read"));
    assert!(line.unwrap().ends_with("; x.toml:2: '/srv'"), "{line:?}");
}

#[test]
fn what_a_profile_grants_is_shown_for_people() {
    let dir = tempfile::tempdir().unwrap();
    let text = "description = 'mine'\n[files]\nwrite = ['${workspace}']\nhide = ['/srv']\n\
                [domains.git]\nexec = ['/usr/bin/git']\nnetwork.connect = ['example.org:22', '10.0.0.0/8:1-9/udp']\n";
    fs::write(dir.path().join("x.toml"), text).unwrap();
    let workspace = dir.path().canonicalize().unwrap();
    let said = dewar_in(dir.path(), &["policy", "show", "x.toml"]);
    let lines: Vec<String> =
        said.out.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "mine".to_owned(),
        format!("rw {}", workspace.display()),
        "hidden /srv".to_owned(),
        "domain git".to_owned(),
        "connect example.org:22/tcp".to_owned(),
        "connect 10.0.0.0/8:1-9/udp".to_owned(),
    ] {
        assert!(lines.contains(&line), "{line}\n{}", said.out);
    }
}

#[test]
fn checking_says_nothing_about_good_profiles_and_everything_about_bad_ones() {
    let good = dewar(&["policy", "check", "workspace", "agent"]);
    assert_eq!((good.status, good.out.as_str(), good.err.as_str()), (0, "", ""));
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), "mode = 1").unwrap();
    let bad = dewar_in(dir.path(), &["policy", "check", "workspace", "./x.toml"]);
    assert!(bad.err.contains("`mode` must be a string, not integer"), "{}", bad.err);
    assert_eq!(bad.status, 2);
}
