//! What one user's runs take of the daemon's memory is bounded, whatever they are made of.

mod common;

use common::{
    DaemonProcess, administration, keep, new_run, new_run_with, place, policy, role as started_as,
};
use daemon::{DaemonDirs, NewRun, Policy, Target, register};
use ipc::{Call, Port, Transport};
use rustix::fs::fstat;
use std::{
    fs,
    os::fd::{AsFd as _, OwnedFd},
};

/// What this program does when it is started again.
#[test]
fn role() {
    if let Some((_, place)) = started_as() {
        keep(&place);
    }
}

/// What nobody may take more of.
const MOST: &str = "more than 256 MiB";

/// A short policy that stands for a rule of each of so many types on each of so many classes.
fn multiplied(salt: usize, types: usize, classes: usize) -> Policy {
    let list = |name: &str, count: usize, form: &dyn Fn(String) -> String| -> String {
        (0..count).map(|n| form(format!("{name}{n}"))).collect()
    };
    let mut policy = policy();
    let text = &mut policy.files[0].1;
    text.push_str(&format!("; {salt}\n(classmap all_c (x))(typeattribute all_t)"));
    text.push_str(&list("k", classes, &|name| format!("(class {name} (p))")));
    let names = list("k", classes, &|name| format!(" {name}"));
    text.push_str(&format!("(classorder (unordered{names}))"));
    text.push_str(&list("k", classes, &|name| format!("(classmapping all_c x ({name} (p)))")));
    text.push_str(&list("t", types, &|name| format!("(type {name})")));
    text.push_str("(typeattributeset all_t (all))(allow all_t self (all_c (x)))");
    policy
}

/// A short policy of so many types that have names of 4,000 letters by the blocks around them.
fn nested(salt: usize, types: usize) -> Policy {
    let mut policy = policy();
    let text = &mut policy.files[0].1;
    text.push_str(&format!("; {salt}\n"));
    (0..180).for_each(|n| text.push_str(&format!("(block b{n:03}{}", "x".repeat(17))));
    (0..types).for_each(|n| text.push_str(&format!("(type t{n})")));
    text.push_str(&")".repeat(180));
    policy
}

/// Bytes of memory that the daemon has at the most by now.
fn most_memory(daemon: &DaemonProcess) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn policies_count_by_what_they_compile_to() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let daemon = DaemonProcess::start(directory.path());
    let make = |id: &str, policy: &Policy| {
        register(&place, &NewRun { id: id.into(), ..NewRun::default() }, policy)
    };
    let error = make("bomb", &multiplied(0, 4096, 1000)).err().expect("it is refused").to_string();
    assert!(error.contains("take more memory"), "{error}");
    let mut runs = Vec::new();
    let error = loop {
        match make(&format!("run{}", runs.len()), &multiplied(runs.len(), 1200, 600)) {
            Ok(run) => runs.push(run),
            Err(error) => break error.to_string(),
        }
        assert!(runs.len() < 4, "{} bytes", most_memory(&daemon));
    };
    assert!(error.contains(MOST) && !runs.is_empty(), "{error}");
    assert!(most_memory(&daemon) < 700 << 20, "{}", most_memory(&daemon));
}

#[test]
fn a_policy_of_a_runs_own_that_a_change_makes_counts() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let _daemon = DaemonProcess::start(directory.path());
    let shared = multiplied(0, 1200, 600);
    let runs: Vec<_> = ["a", "b", "c", "d"].map(|id| new_run_with(&place, id, &shared)).into();
    for (run, _) in &runs {
        run.follow(Vec::new(), |_| Some(Vec::new())).expect("followed");
    }
    let set = |id: &str| {
        let changed = administration(&place).set(Target::Run(id.into()), &[("open".into(), true)]);
        changed.map_err(|error| error.to_string())
    };
    set("a").expect("one of its own");
    let refused = ["b", "c"].into_iter().find_map(|id| set(id).err());
    assert!(refused.as_deref().is_some_and(|why| why.contains(MOST)), "{refused:?}");
    // What is not changed goes on by what it had, and others have room again when one has ended.
    assert_eq!(administration(&place).runs().expect("runs").len(), 4);
}

#[test]
fn policies_count_by_their_names_and_what_macros_copy() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let daemon = DaemonProcess::start(directory.path());
    let make = |id: &str, policy: &Policy| {
        register(&place, &NewRun { id: id.into(), ..NewRun::default() }, policy)
    };
    let mut copied = policy();
    let path = format!("(macro copied () (filecon \"/{}\" any ()))", "x".repeat(30_000));
    copied.files[0].1.push_str(&(path + &"(call copied)".repeat(5000)));
    for hostile in [nested(0, 50_000), copied] {
        let error = make("bomb", &hostile).err().expect("it is refused").to_string();
        assert!(error.contains("take more memory"), "{error}");
    }
    let mut runs = Vec::new();
    let error = loop {
        match make(&format!("run{}", runs.len()), &nested(runs.len(), 8000)) {
            Ok(run) => runs.push(run),
            Err(error) => break error.to_string(),
        }
        assert!(runs.len() < 8, "{} bytes", most_memory(&daemon));
    };
    assert!(error.contains(MOST) && !runs.is_empty(), "{error}");
    assert!(most_memory(&daemon) < 700 << 20, "{}", most_memory(&daemon));
}

#[test]
fn what_runs_say_of_their_kernel_side_counts() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let _daemon = DaemonProcess::start(directory.path());
    let settled = server_port::sealed(&vec![0; 4 << 20]).unwrap();
    let mut runs = Vec::new();
    let error = loop {
        let id = format!("run{:03}", runs.len());
        runs.push(new_run(&place, &id));
        let mut port = Port::connect(&place.socket(), Transport::Socket).unwrap();
        let body = [b"D\x01\x06", id.as_bytes()].concat();
        let call = Call { body: &body, descriptors: &[settled.as_fd()], effective: None };
        let answer = String::from_utf8_lossy(port.send(call).unwrap().body).into_owned();
        if answer.contains("256") {
            break answer;
        }
        assert!(runs.len() < 70, "{answer}");
    };
    assert!(error.contains(MOST) && runs.len() > 50, "{} {error}", runs.len());
}

#[test]
fn an_answer_is_the_daemons_memory_until_its_client_asks_again() {
    let directory = tempfile::tempdir().unwrap();
    let place: DaemonDirs = place(directory.path());
    let _daemon = DaemonProcess::start(directory.path());
    let mut policy = policy();
    let long = "x".repeat(1 << 20);
    policy.files[0].1.push_str(&format!("(filecon \"/{long}\" any (u r app_t ((s0) (s0))))"));
    let (_run, _spool) = new_run_with(&place, "long", &policy);
    let mut port = Port::connect(&place.socket(), Transport::Socket).unwrap();
    port.call(b"D\x01\x04long").expect("it attaches");
    let rules = |port: &mut Port| -> OwnedFd {
        let call = Call { body: b"Q\x07", ..Call::default() };
        port.send(call).unwrap().descriptors.pop().expect("memory")
    };
    let taken = |memory: &OwnedFd| fstat(memory.as_fd()).unwrap().st_blocks;
    let first = rules(&mut port);
    assert!(taken(&first) > 2000);
    let second = rules(&mut port);
    assert_eq!(taken(&first), 0);
    drop(port);
    common::wait_until("it is gone with its client", || taken(&second) == 0);
}
