//! `dewar selftest` under profile `agent`, as root and as an ordinary user, in both modes of
//! mediation: every attack is shown to happen with the wall off, and none gets through. What
//! differs is named here.

use serde_json::Value;
use std::{
    collections::BTreeSet,
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::{Command, Output},
};

/// An ordinary user, who need not have a name.
const USER: u32 = 61_234;

/// What gets through, with the reason. `dns-labels`: `agent` grants the name server, by which
/// programs find hosts; SECURITY.md says so. The witness needs a port that only root may bind.
const KNOWN: [&str; 1] = ["dns-labels"];

/// What some machines do not show: the kernel lacks it, or lets nobody but the machine's root do
/// it.
const MAYBE: [&str; 20] = [
    // A race that is bounded in time, and needs two processors.
    "race-of-an-address",
    "ipv6-routing-header",
    "raw-socket",
    "packet-socket",
    "vsock",
    "odd-families",
    "netfilter-by-netlink",
    "dns-labels",
    "kernel-memory",
    "sysrq",
    "core-pattern",
    "block-device",
    "type-into-terminal",
    "user-namespace",
    "mount",
    "enter-namespaces",
    "keys-of-the-user",
    "bpf",
    "userfaultfd",
    "file-handles",
];
/// The same for an ordinary user.
const MAYBE_USER: [&str; 5] =
    ["perf-events", "name-of-the-machine", "uncover-by-unmount", "io-uring", "multipath-tcp"];

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Calls `dewar selftest` as root or as an ordinary user.
fn selftest(as_user: bool, arguments: &[&str]) -> Output {
    let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).expect("open the directory");
    let dewar = test_support::install(place.path(), &["dewar", "dewar-selftest"]);
    let home = place.path().join("home");
    std::fs::create_dir(&home).expect("a home");
    let mut command = Command::new(dewar);
    command.arg("selftest").args(arguments).current_dir("/");
    command.env("HOME", &home).env_remove("XDG_CACHE_HOME");
    if as_user && is_root() {
        chown(&home, Some(USER), Some(USER)).expect("give the home away");
        command.uid(USER).gid(USER);
    }
    command.output().expect("start `dewar`")
}

fn cases(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let all: Value = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr));
    });
    all["cases"].as_array().expect("a list").clone()
}

/// The names of the cases of which `is` holds, behind that wall.
fn names<'a>(cases: &'a [Value], wall: usize, is: &[&str]) -> BTreeSet<&'a str> {
    let found = cases.iter().filter(|case| {
        let outcome = case["verdicts"][wall]["outcome"].as_str().expect("an outcome");
        is.contains(&outcome)
    });
    found.filter_map(|case| case["name"].as_str()).collect()
}

fn holds(as_user: bool, mode: &str) {
    if !as_user && !is_root() {
        eprintln!("note: not run by root, so this says nothing about root");
        return;
    }
    let list = selftest(as_user, &["list", "--json"]);
    let list: Value = serde_json::from_slice(&list.stdout).expect("a list of cases");
    let name = |case: &'_ Value| case["name"].as_str().expect("a name").to_owned();
    let all: Vec<String> = list.as_array().expect("a list").iter().map(name).collect();
    assert!(all.len() >= 50, "only {} cases", all.len());
    let outputs = in_parts(as_user, mode, &all);
    let tried: Vec<Value> = outputs.iter().flat_map(cases).collect();
    assert_eq!(tried.len(), all.len());
    let mut shown = names(&tried, 0, &["got-through"]);
    let may = |name: &str| MAYBE.contains(&name) || as_user && MAYBE_USER.contains(&name);
    let missed = |shown: &BTreeSet<&str>| -> Vec<&str> {
        all.iter().map(String::as_str).filter(|it| !shown.contains(it) && !may(it)).collect()
    };
    // Beside others, a race may be lost.
    let alone = missed(&shown)
        .into_iter()
        .map(|name| cases(&selftest(as_user, &["--json", "--mode", mode, name])));
    let alone: Vec<Value> = alone.flatten().collect();
    shown.extend(names(&alone, 0, &["got-through"]));
    let not_shown = missed(&shown);
    assert!(not_shown.is_empty(), "not shown with the wall off: {not_shown:?}, {alone:#?}");
    assert!(names(&alone, 1, &["got-through"]).is_empty(), "got through: {alone:#?}");
    let through: Vec<&str> = names(&tried, 1, &["got-through"]).into_iter().collect();
    assert!(through.iter().all(|name| KNOWN.contains(name)), "got through: {through:?}");
    let not_tried = names(&tried, 1, &["not-applicable"]);
    let not_tried: Vec<_> = not_tried.intersection(&shown).collect();
    assert!(not_tried.is_empty(), "not tried: {not_tried:?}");
    for output in &outputs {
        let through = names(&cases(output), 1, &["got-through"]).len();
        assert_eq!(output.status.code(), Some(i32::from(through > 0)), "{through}");
    }
}

/// Tries cases in several selftests beside each other: most of the time they wait.
fn in_parts(as_user: bool, mode: &str, all: &[String]) -> Vec<Output> {
    const PARTS: usize = 4;
    let part = |first: usize| {
        let names = all.iter().skip(first).step_by(PARTS).map(String::as_str);
        let words: Vec<&str> = ["--json", "--mode", mode].into_iter().chain(names).collect();
        selftest(as_user, &words)
    };
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..PARTS).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().map(|part| part.join().expect("a part")).collect()
    })
}

#[test]
fn nothing_gets_through_agent_as_root() {
    holds(false, "all");
}

#[test]
fn nothing_gets_through_agent_as_an_ordinary_user() {
    holds(true, "all");
}

#[test]
fn nothing_gets_through_agent_in_mode_fast_as_root() {
    holds(false, "fast");
}

#[test]
fn nothing_gets_through_agent_in_mode_fast_as_an_ordinary_user() {
    holds(true, "fast");
}

#[test]
fn what_a_profile_grants_gets_through_is_ranked_and_ends_with_status_1() {
    let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let profile = place.path().join("lax.toml");
    let rules = "extends = 'agent'\n[files]\nguard = 'none'\nread = ['${home}/.ssh']\n";
    std::fs::write(&profile, rules).expect("write");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).expect("open");
    let profile = profile.to_str().expect("UTF-8");
    let output = selftest(true, &["-p", profile, "secret-file", "editor-task", "mcp-server"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let first = said.find("1. critical: Names a server").expect(&said);
    let second = said.find("2. high: Reads a private key").expect(&said);
    assert!(first < second, "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80 || line.contains(". ")), "{said}");
    assert!(said.starts_with("stopped") || said.starts_with("GOT THROUGH"), "{said}");
}

#[test]
fn a_case_or_tool_that_is_not_known_is_wrong_use() {
    for (words, part) in [
        (&["no-such-case"][..], "no case is called `no-such-case`"),
        (&["--against", "nothing-like-it"], "no tool is known by the name `nothing-like-it`"),
        (&["explain", "no-such-case"], "no case is called `no-such-case`"),
        (&["-p", "/no/such.toml"], "profile `/no/such.toml`"),
    ] {
        let output = selftest(true, words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
    }
}

#[test]
fn a_case_is_listed_and_explained_with_its_source() {
    let list = selftest(true, &["list"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("type-into-terminal"));
    let said = selftest(true, &["explain", "type-into-terminal"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("critical") && said.contains("CVE-2017-5226"), "{said}");
}

#[test]
fn nothing_is_left_after_an_interruption() {
    let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let dewar = test_support::install(place.path(), &["dewar", "dewar-selftest"]);
    let scratch = place.path().join("cache");
    std::fs::create_dir(&scratch).expect("a directory");
    let mut command = Command::new(dewar);
    command.args(["selftest", "race-of-a-write"]).env("DEWAR_SELFTEST_DIR", &scratch);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("start `dewar`");
    let begun = std::time::Instant::now();
    let is_empty = |path: &Path| std::fs::read_dir(path).expect("a directory").next().is_none();
    while is_empty(&scratch) && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("interrupt it");
    let status = child.wait().expect("its end");
    assert_eq!(status.code(), Some(130));
    assert!(is_empty(&scratch), "something is left");
}
