//! Clients that do what no run does: whatever it is, the runs of others go on.

mod common;

use common::{
    DaemonProcess, UNFIT, administration, keep, new_run, new_run_with, place, policy,
    role as started_as, start_as, wait_until,
};
use daemon::{ClientError, DaemonDirs, Filter, Journal, NewRun, Policy, Target, UNKNOWN, register};
use flask::{AccessVector, Class, Question, SecurityServer as _, perm};
use ipc::{Call, Port, Transport};
use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    os::{
        fd::AsFd as _,
        unix::{fs::PermissionsExt as _, process::CommandExt as _},
    },
    path::Path,
    process::{Child, Stdio},
};

/// What this program does when it is started again.
#[test]
fn role() {
    match started_as() {
        Some((role, place)) if role == "daemon" => keep(&place),
        Some((role, place)) if role == SYSTEM => keep(&DaemonDirs { system: true, ..place }),
        Some((role, place)) if role == DEAF => be_deaf(&place),
        Some((id, place)) => be_a_run(&id, &DaemonDirs { system: true, ..place }),
        None => {}
    }
}

/// A daemon for every user.
const SYSTEM: &str = "system";

/// A run that applies every change. `unfit` says that it can follow none.
fn be_a_run(id: &str, place: &DaemonDirs) {
    let (registration, _spool) = new_run(place, id);
    follow(&registration, if id == "unfit" { UNFIT } else { b"fit" });
    println!("{READY}");
    loop {
        std::thread::park();
    }
}

/// Many runs that apply no change.
const DEAF: &str = "deaf";
const DEAF_RUNS: usize = 30;

fn be_deaf(place: &DaemonDirs) {
    let policy = |n| {
        let mut policy = policy();
        policy.files[0].1.push_str(&format!("(type deaf{n}_t)"));
        policy
    };
    let run = |n| new_run_with(place, &format!("deaf{n}"), &policy(n));
    let _runs: Vec<_> = (0..DEAF_RUNS).map(run).collect();
    println!("{READY}");
    loop {
        std::thread::park();
    }
}

const READY: &str = "the run follows";

fn follow(run: &daemon::Registration, settled: &[u8]) {
    run.follow(settled.to_vec(), |change| Some(change.seqno.to_string().into_bytes()))
        .expect("followed");
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

/// A policy whose labels may have a text of 750 KB, for which others have short names.
fn policy_with_long_labels() -> Policy {
    let mut policy = policy();
    let text = &mut policy.files[0].1;
    let long = "x".repeat(1500);
    for n in (1..1000).step_by(2) {
        *text = text.replace(&format!("(category c{n})"), &format!("(category c{n}{long})"));
        *text = text.replace(&format!(" c{n} "), &format!(" c{n}{long} "));
        text.push_str(&format!("(categoryalias a{n}) (categoryaliasactual a{n} c{n}{long})"));
    }
    policy
}

/// How many such labels a run is given.
fn given(run: &daemon::Registration) -> usize {
    let all: Vec<String> = (1..1000).step_by(2).map(|n| format!("a{n}")).collect();
    let label = |n: usize| format!("u:r:app_t:s0:{},c{}", all.join(","), 2 * n);
    (0..200).take_while(|n| run.server.context_to_sid(&label(*n)).is_ok()).count()
}

#[test]
fn labels_of_a_user_are_bounded_by_what_they_take_also_in_servers_of_a_run_s_own() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let _daemon = DaemonProcess::start(directory.path());
    let policy = policy_with_long_labels();
    let (one, _spool) = new_run_with(&place, "one", &policy);
    let (other, _other) = new_run_with(&place, "other", &policy);
    let had = given(&one);
    assert!((60..90).contains(&had), "{had} labels");
    let own = administration(&place).set(Target::Run("other".into()), &[("open".into(), true)]);
    let refused = format!("{:?}", own.err());
    assert!(refused.contains("the labels that were given out would take more"), "{refused}");
    assert_eq!(given(&other), had, "those that are there are found");
    // What a run had counts for nobody when it has ended.
    for run in [one, other] {
        run.end().unwrap();
    }
    let mut otherwise = policy;
    otherwise.files[0].1.push_str("(type otherwise_t)");
    let mut next = 0;
    wait_until("labels of runs that have ended are gone", || {
        next += 1;
        let (run, _spool) = new_run_with(&place, &format!("next{next}"), &otherwise);
        let given = given(&run);
        run.end().unwrap();
        given == had
    });
}

#[test]
fn changes_of_many_servers_take_no_thread_for_each() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let daemon = DaemonProcess::start(directory.path());
    let mut deaf = start_as(DEAF, directory.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(deaf.stdout.take().expect("piped")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains(READY))));
    let before = daemon.threads();
    let changes: Vec<_> = (0..4)
        .map(|_| {
            let mut client = administration(&place);
            std::thread::spawn(move || client.set(Target::All, &[("open".into(), true)]))
        })
        .collect();
    let mut most = 0;
    wait_until("the runs are killed", || {
        most = most.max(daemon.threads());
        deaf.try_wait().unwrap().is_some()
    });
    assert!(most < before + 3 * changes.len(), "{before} threads, then {most}");
    for change in changes {
        // Whoever comes second may find that all runs have ended.
        if let Ok(changed) = change.join().unwrap() {
            assert_eq!(changed.len(), DEAF_RUNS);
            let ended = ["killed", "ended"];
            let mut members = changed.iter().flat_map(|change| &change.members);
            assert!(members.all(|member| ended.contains(&&*member.outcome)), "{changed:?}");
        }
    }
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
    still_there.call(b"D\x01\x08attacker").expect("it attaches");
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

/// One user's process each.
struct Users(Vec<Child>);

impl Users {
    fn start(directory: &Path, runs: &[(&str, u32)]) -> Self {
        let start = |(id, uid): &(&str, u32)| {
            let mut run = start_as(id, directory).uid(*uid).stdout(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(run.stdout.take().expect("piped")).lines();
            assert!(lines.any(|line| line.is_ok_and(|line| line.contains(READY))), "{id}");
            run
        };
        Self(runs.iter().map(start).collect())
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        for run in &mut self.0 {
            // One that has ended already is as good.
            let _ = (run.kill(), run.wait());
        }
    }
}

/// Only root has a daemon for every user.
#[test]
fn a_run_that_cannot_follow_keeps_root_from_changing_that_of_no_other_user() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("note: not run by root, so a change for several users is left out");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let place = DaemonDirs { system: true, ..place(directory.path()) };
    let _daemon = DaemonProcess::start_as(SYSTEM, &place, directory.path());
    let (mine, _spool) = new_run(&place, "mine");
    // More than a message holds.
    follow(&mine, &vec![b'f'; 1 << 20]);
    let _users = Users::start(directory.path(), &[("unfit", 64_001), ("fit", 64_002)]);
    let open = |id: &str| {
        let runs = administration(&place).runs().expect("runs");
        runs.iter().find(|run| run.id == id).expect(id).booleans == [("open".to_owned(), true)]
    };
    // As long as it has not said that it is unfit, it is not asked.
    let unfit = |id: &str| {
        let same = administration(&place).set(Target::Run(id.into()), &[("open".into(), false)]);
        matches!(same, Err(ClientError::Conflict(_)))
    };
    wait_until("the run has said what it is", || unfit("unfit"));

    let changed = administration(&place).set(Target::All, &[("open".into(), true)]).expect("set");
    assert_eq!(["mine", "fit", "unfit"].map(open), [true, true, false]);
    assert_eq!(changed.len(), 3);
    for change in &changed {
        let [member] = change.members.as_slice() else { panic!("{change:?}") };
        if member.run == "unfit" {
            assert_eq!((member.outcome.as_str(), change.complete), ("unchanged", false));
            let why = change.refused.as_deref().expect("why");
            assert!(
                ["unfit", "64001", "it was told otherwise"].iter().all(|it| why.contains(it)),
                "{why}"
            );
        } else {
            assert!(change.complete && change.refused.is_none(), "{change:?}");
        }
    }
    // One's own that cannot follow: nothing is done.
    let (own, _spool) = new_run(&place, "own");
    follow(&own, UNFIT);
    let all = |on| administration(&place).set(Target::All, &[("open".into(), on)]);
    wait_until("the run has said what it is", || unfit("own"));
    assert!(matches!(all(false), Err(ClientError::Conflict(_))));
    assert_eq!(["mine", "fit", "unfit", "own"].map(open), [true, true, false, false]);
}
