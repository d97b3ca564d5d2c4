//! What one user asks for, however much of it there is, keeps nobody else waiting.

mod common;

use common::{
    DaemonProcess, administration, keep, new_run, new_run_with, place, policy, role as started_as,
    start, wait_until,
};
use daemon::{
    Daemon, DaemonDirs, Filter, Journal, NewRun, Policy, Registration, Settings, Target, Writer,
    register,
};
use ipc::{Port, Transport};
use std::{
    fs,
    os::unix::fs::FileExt as _,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// What this program does when it is started again.
#[test]
fn role() {
    match started_as() {
        Some((role, place)) if role == SMALL => keep_little(&place),
        Some((role, place)) if role == DOOMED => {
            let _run = new_run(&place, DOOMED);
            loop {
                thread::park();
            }
        }
        Some((_, place)) => keep(&place),
        None => {}
    }
}

/// A run that loses its spool, and is killed.
const DOOMED: &str = "doomed";

/// A daemon whose journal holds a megabyte.
const SMALL: &str = "small";

fn keep_little(place: &DaemonDirs) {
    let settings = Settings { journal_bytes: 1 << 20, ..Settings::default() };
    Daemon::start(place, settings, None).expect("started").serve().expect("served");
}

const RECORD: &[u8] = br#"{"time": 1.0, "granted": false, "scontext": "u:r:app_t", "object": "/x"}
"#;

/// Its rules are an answer that takes a while.
fn policy_with_many_rules() -> Policy {
    let mut policy = policy();
    let rule = |n| format!("(filecon \"/{n}\" any (u r app_t ((s0) (s0))))");
    policy.files[0].1.extend((0..60_000).map(rule));
    policy
}

/// What `done` sends, or that it has sent nothing for long.
fn within<T: Send + 'static>(what: &str, done: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(done()));
    receiver.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("{what}"))
}

#[test]
fn a_long_answer_and_a_change_of_its_run_wait_for_each_other_in_no_circle() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let _daemon = DaemonProcess::start(directory.path());
    let policy = policy_with_many_rules();
    let follow = |(run, spool): (Registration, Writer)| {
        run.follow_by_path(|_| Some(Vec::new())).expect("followed");
        (run, spool)
    };
    let _other = follow(new_run_with(&place, "other", &policy));
    for n in 0..3 {
        let id = format!("long{n}");
        let _run = follow(new_run_with(&place, &id, &policy));
        let mut port = Port::connect(&place.socket(), Transport::Socket).unwrap();
        port.call(&[b"D\x01\x05", id.as_bytes()].concat()).expect("it attaches");
        let asked = thread::spawn(move || port.call(b"Q\x07").is_ok());
        thread::sleep(Duration::from_millis(20));
        let (to, open) = (place.clone(), [("open".to_owned(), true)]);
        let set = move || administration(&to).set(Target::Run(id), &open).expect("set").len();
        assert_eq!(within("the change hangs", set), 1);
        assert!(within("the answer hangs", move || asked.join().unwrap()));
    }
    assert_eq!(within("the list hangs", move || administration(&place).runs().unwrap().len()), 4);
}

/// Bytes of memory that the daemon has at the most by now.
fn most_memory(daemon: &DaemonProcess) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_list_of_runs_takes_little_memory_whatever_their_policies_are() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let daemon = DaemonProcess::start(directory.path());
    let mut policy = policy();
    let long = "x".repeat(1900);
    policy.files[0].1.extend((0..400).map(|n| format!("(boolean b{n}{long} false)")));
    let _runs: Vec<_> =
        (0..100).map(|n| new_run_with(&place, &format!("run{n:03}"), &policy)).collect();
    let before = most_memory(&daemon);
    let runs = administration(&place).runs().expect("listed");
    let ids: Vec<_> = runs.iter().map(|run| run.id.clone()).collect();
    assert_eq!(ids, (0..100).map(|n| format!("run{n:03}")).collect::<Vec<_>>());
    let taken = most_memory(&daemon) - before;
    assert!(taken < 16 << 20, "{taken} bytes");
}

#[test]
fn a_run_begins_while_the_spools_of_others_are_full_and_they_are_asked_to_be_taken() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let _daemon = DaemonProcess::start(directory.path());
    let runs: Vec<_> = (0..200).map(|n| new_run(&place, &format!("run{n:03}"))).collect();
    let lines = vec![b'\n'; 1 << 20];
    for n in 0..runs.len() {
        let spool = place.state.join(format!("spool/run{n:03}"));
        let spool = fs::File::options().write(true).open(spool).unwrap();
        spool.write_all_at(&lines, 4096).unwrap();
    }
    for _ in 0..40 {
        let place = place.clone();
        // They end with the daemon.
        thread::spawn(move || {
            let mut client = administration(&place);
            while client.flush().is_ok() {}
        });
    }
    thread::sleep(Duration::from_millis(500));
    for n in 0..5 {
        let begin = Instant::now();
        let (_new, _spool) = new_run(&place, &format!("new{n}"));
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(15), "it took {took:?} to register");
    }
}

#[test]
fn a_run_that_has_lost_its_spool_ends_when_it_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let _daemon = DaemonProcess::start(directory.path());
    let mut run = start(DOOMED, directory.path());
    let runs = || administration(&place).runs().expect("listed").len();
    wait_until("it is there", || runs() == 1);
    let spool = place.state.join("spool").join(DOOMED);
    let filter = Filter { run: Some(DOOMED.into()), ..Filter::default() };
    wait_until("its spool is lost", || {
        // It may be made only now.
        let _ = fs::File::options().write(true).open(&spool).map(|file| file.set_len(0));
        let journal = Journal::read(&place.journal()).expect("a journal");
        !journal.find(&filter, 0, 1).expect("found").is_empty()
    });
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("it has ended", || runs() == 0);
}

#[test]
fn runs_without_a_record_make_no_journal_grow_and_push_nobodys_records_out() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let _daemon = DaemonProcess::start_as(SMALL, &place, directory.path());
    let (victim, mut records) = new_run(&place, "victim");
    records.append(RECORD);
    victim.end().expect("ended");
    let (policy, long) = (policy(), "\u{1f600}".repeat(1024));
    let (_keeps, _spool) = new_run(&place, "keeps");
    for n in 0..400 {
        let [command, profile, name] = [long.clone(), long.clone(), long.clone()];
        let run = NewRun { id: format!("run{n}"), command, profile, name: Some(name) };
        register(&place, &run, &policy).expect("registered").0.end().expect("ended");
    }
    let size = fs::metadata(place.journal()).unwrap().len();
    assert!(size < 2 << 20, "{size} bytes");
    let journal = Journal::read(&place.journal()).expect("a journal");
    let filter = Filter { run: Some("victim".into()), ..Filter::default() };
    assert_eq!(journal.find(&filter, 0, 10).expect("found").len(), 1);
    assert!(journal.rotated().expect("read").is_none(), "no record was thrown away");
}

#[test]
fn a_run_is_not_called_as_runs_are_numbered() {
    let directory = tempfile::tempdir().unwrap();
    let place = place(directory.path());
    let _daemon = DaemonProcess::start(directory.path());
    let run = |name: &str| NewRun {
        id: format!("run-{}", name.len()),
        name: Some(name.into()),
        ..NewRun::default()
    };
    let error = register(&place, &run("abcd2345"), &policy()).err().expect("it is refused");
    assert!(error.to_string().contains("looks like the id of a run"), "{error}");
    register(&place, &run("build"), &policy()).expect("registered");
}
