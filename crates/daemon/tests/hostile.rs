//! Clients that do what no run does: whatever it is, the runs of others go on.

mod common;

use common::{DaemonProcess, administration, keep, new_run, place, policy, role as started_as};
use daemon::{ClientError, DaemonDirs, Filter, Journal, NewRun, Policy, UNKNOWN, register};
use flask::{AccessVector, Class, Question, SecurityServer as _, perm};
use ipc::{Call, Port, Transport};
use std::{
    fs::{self, File},
    os::fd::AsFd as _,
};

/// What this program does when it is started again.
#[test]
fn role() {
    if let Some((_, place)) = started_as() {
        keep(&place);
    }
}

const RECORD: &[u8] = br#"{"time": 1.0, "granted": false, "scontext": "u:r:app_t", "object": "/x"}
"#;

fn spool(place: &DaemonDirs, run: &str) -> File {
    File::options().write(true).open(place.state.join("spool").join(run)).expect("a spool")
}

fn entries(place: &DaemonDirs, run: &str) -> Vec<u64> {
    let journal = Journal::read(&place.journal()).expect("a journal");
    let filter = Filter { run: Some(run.into()), ..Filter::default() };
    let found = journal.find(&filter, 0, 100).expect("entries");
    found.iter().map(|entry| entry.lost).collect()
}

/// `policy` in other words, about a megabyte of them.
fn said_otherwise(n: usize) -> Policy {
    let mut policy = policy();
    policy.files[0].1.push_str(&format!("\n; {n}{}\n", " ".repeat(1 << 20)));
    policy
}

fn state_bytes(place: &DaemonDirs) -> u64 {
    let len = |name: &str| fs::metadata(place.state.join(name)).map_or(0, |file| file.len());
    len("state.db") + len("state.db-wal")
}

#[test]
fn a_spool_cut_short_loses_the_records_of_its_run_alone() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let mut daemon = DaemonProcess::start(directory.path());
    let (_bad, _) = new_run(&place, "bad");
    let (good, mut records) = new_run(&place, "good");
    spool(&place, "bad").set_len(0).unwrap();
    records.append(RECORD);
    administration(&place).flush().expect("the others' records are taken");
    good.end().expect("the others end");
    assert_eq!((entries(&place, "good"), entries(&place, "bad")), (vec![0], vec![UNKNOWN]));
    assert!(!place.state.join("spool/bad").exists());
    daemon.kill();
    let _daemon = DaemonProcess::start(directory.path());
    let (later, mut records) = new_run(&place, "later");
    records.append(RECORD);
    later.end().expect("so they do after a new daemon");
    assert_eq!(entries(&place, "later"), [0]);
}

#[test]
fn long_command_lines_are_cut_and_lists_of_any_length_arrive() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let _daemon = DaemonProcess::start(directory.path());
    let policy = policy();
    let register = |n: usize| {
        let command = "é".repeat(30_000);
        let run = NewRun { id: format!("run{n}"), command, profile: "p".into(), name: None };
        register(&place, &run, &policy).expect("registered")
    };
    let _runs: Vec<_> = (0..40).map(register).collect();
    let listed = administration(&place).runs().expect("listed");
    assert_eq!(listed.len(), 40);
    assert!(listed.iter().all(|run| run.command == format!("{}…", "é".repeat(2048))));
}

#[test]
fn refused_registrations_and_replaced_policies_leave_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let _daemon = DaemonProcess::start(directory.path());
    let (run, _spool) = new_run(&place, "one");
    for n in 0..10 {
        let again = NewRun { id: "one".into(), ..NewRun::default() };
        let refused = register(&place, &again, &said_otherwise(n)).map(drop);
        assert!(matches!(refused, Err(ClientError::Refused(_))), "{refused:?}");
    }
    assert!(state_bytes(&place) < 1 << 20, "{} bytes", state_bytes(&place));
    for n in 0..20 {
        run.load(&said_otherwise(n), false).expect("loaded");
    }
    // The write-ahead log has some megabytes before it is written back.
    assert!(state_bytes(&place) < 12 << 20, "{} bytes", state_bytes(&place));
}

/// A run that has ended on one connection, while another still speaks for it.
#[test]
fn a_run_that_has_ended_changes_the_policy_of_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let _daemon = DaemonProcess::start(directory.path());
    let (victim, _spool) = new_run(&place, "victim");
    let (attacker, _other) = new_run(&place, "attacker");
    let question = |run: &daemon::Registration| {
        let sid = |name: &str| run.server.context_to_sid(&format!("u:r:{name}:s0")).unwrap();
        Question { ssid: sid("app_t"), tsid: sid("secret_t"), tclass: Class::File }
    };
    let allowed =
        |run: &daemon::Registration| run.server.compute_av(question(run)).unwrap().allowed;
    assert_eq!(allowed(&victim), AccessVector(0));
    let mut evil = policy();
    evil.files[0].1.push_str("(allow app_t secret_t (file (read)))");
    let mut still_there = Port::connect(&place.socket(), Transport::Socket).unwrap();
    still_there.call(b"D\x01\x08attacker\0").expect("it attaches");
    attacker.end().unwrap();
    let memory = server_port::sealed(&evil.to_bytes()).unwrap();
    let load = Call { body: b"D\x04\0", descriptors: &[memory.as_fd()], effective: None };
    let answer = still_there.send(load).unwrap().body.to_vec();
    assert!(String::from_utf8_lossy(&answer).contains("the run has ended"), "{answer:?}");
    assert_eq!(allowed(&victim), AccessVector(0));
    // One that goes on changes its own alone.
    let (other, _spool) = new_run(&place, "other");
    other.load(&evil, false).unwrap();
    assert_eq!((allowed(&victim), allowed(&other)), (AccessVector(0), perm::file::READ));
}
