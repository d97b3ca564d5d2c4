//! The daemon is killed and started again, over and over, while runs ask, record, and their policy
//! changes.

mod common;

use avc::{Avc, Hint};
use common::{DaemonProcess, administration, keep, new_run, place, role as started_as};
use daemon::{Filter, Journal, Target};
use flask::{Class, Question, SecurityServer as _, Sid, perm};
use std::{
    collections::HashMap,
    io::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// What this program does when it is started again.
#[test]
fn role() {
    if let Some((_, place)) = started_as() {
        keep(&place);
    }
}

/// A run that asks without end, and notes what it was told.
struct Load {
    registration: daemon::Registration,
    spool: Mutex<daemon::Writer>,
    avc: Avc,
    sids: Mutex<HashMap<String, Sid>>,
    queries: AtomicU64,
    records: AtomicU64,
    changes: AtomicU32,
}

impl Load {
    fn new(place: &daemon::DaemonDirs, id: &str) -> Arc<Self> {
        let (registration, spool) = new_run(place, id);
        let avc = Avc::new(Arc::clone(&registration.server) as _);
        let load = Arc::new(Self {
            registration,
            spool: Mutex::new(spool),
            avc,
            sids: Mutex::default(),
            queries: AtomicU64::new(0),
            records: AtomicU64::new(0),
            changes: AtomicU32::new(0),
        });
        let applying = Arc::clone(&load);
        let apply = move |change: server_port::PolicyUpdate| {
            applying.avc.reset(change.seqno);
            applying.changes.fetch_add(1, Ordering::Relaxed);
            Some(Vec::new())
        };
        load.registration.follow(Vec::new(), apply).expect("followed");
        load
    }

    fn sid(&self, context: &str) -> Sid {
        let sid = self.registration.server.context_to_sid(context).expect("a SID");
        let before = self.sids.lock().unwrap().insert(context.to_owned(), sid);
        assert!(before.is_none_or(|before| before == sid), "{context}: {before:?}, then {sid}");
        sid
    }

    /// One round: labels, decisions, records.
    fn round(&self, n: u64) {
        let ssid = self.sid("u:r:app_t:s0");
        let level = format!("s0:c{},c{}", n % 1000, n % 1000 + 1);
        for (kind, granted) in [("note_t", Some(true)), ("secret_t", Some(false)), ("gate_t", None)]
        {
            let tsid = self.sid(&format!("u:r:{kind}:{level}"));
            let q = Question { ssid, tsid, tclass: Class::File };
            let verdict = self.avc.has_perm(q, perm::file::READ, &Hint::default());
            // No answer is a denial: never a wrong one.
            let verdict = verdict.expect("the daemon is back before patience is over");
            assert!(
                granted.is_none_or(|granted| verdict.granted() == granted),
                "{kind} {verdict:?}"
            );
            let write = self.avc.has_perm(q, perm::file::WRITE, &Hint::default());
            assert!(!write.expect("cached or answered").granted());
            self.queries.fetch_add(2, Ordering::Relaxed);
        }
        let number = self.records.fetch_add(1, Ordering::Relaxed);
        let record = serde_json::json!({ "time": 1.0, "granted": false, "scontext": "u:r:app_t:s0",
            "object": format!("/{number}"), "pid": n });
        writeln!(Line(&self.spool), "{record}").expect("written");
    }
}

/// Writes whole lines at once.
struct Line<'a>(&'a Mutex<daemon::Writer>);

impl std::io::Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().append(bytes);
        Ok(bytes.len())
    }
    fn write_fmt(&mut self, text: std::fmt::Arguments<'_>) -> std::io::Result<()> {
        self.write_all(text.to_string().as_bytes())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Sets a flag at its end, however that comes.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// `DEWAR_TESTS_RESTARTS` times (10 if not said otherwise).
#[test]
fn a_daemon_that_is_killed_again_and_again_grants_nothing_wrong_and_loses_no_record() {
    let restarts =
        std::env::var("DEWAR_TESTS_RESTARTS").map_or(10, |n| n.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a directory");
    let place = place(directory.path());
    let mut daemon = DaemonProcess::start(directory.path());
    let loads: Vec<_> = (0..3).map(|n| Load::new(&place, &format!("run{n}"))).collect();
    let (stop, begin) = (AtomicBool::new(false), Instant::now());
    let mut away = Duration::ZERO;
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        for load in &loads {
            scope.spawn(|| {
                // One that fails ends all.
                let _stop = Stop(&stop);
                let mut n = 0;
                while !stop.load(Ordering::Acquire) {
                    load.round(n);
                    n += 1;
                }
            });
        }
        scope.spawn(|| {
            let mut on = false;
            while !stop.load(Ordering::Acquire) {
                on = !on;
                // Whoever asks may be cut off; the next one is not.
                let _ = daemon::Administration::connect(&place)
                    .and_then(|mut it| it.set(Target::All, &[("open".into(), on)]));
                thread::sleep(Duration::from_millis(20));
            }
        });
        for _ in 0..restarts {
            thread::sleep(Duration::from_millis(100));
            daemon.kill();
            let gone = Instant::now();
            daemon = DaemonProcess::start(directory.path());
            away += gone.elapsed();
        }
        // Long enough for everybody to be back.
        thread::sleep(Duration::from_millis(500));
    });
    let mut administration = administration(&place);
    let changed = administration.set(Target::All, &[("open".into(), true)]).expect("changed");
    assert!(changed.iter().all(|change| change.complete), "{changed:?}");
    for load in &loads {
        load.registration.end().expect("ended");
    }
    let journal = Journal::read(&place.journal()).expect("a journal");
    for (n, load) in loads.iter().enumerate() {
        let filter = Filter { run: Some(format!("run{n}")), ..Filter::default() };
        let entries = journal.find(&filter, 0, u32::MAX).expect("entries");
        let objects: Vec<_> = entries
            .iter()
            .map(|entry| {
                assert_eq!(entry.lost, 0, "{}", entry.record);
                let record: serde_json::Value = serde_json::from_str(&entry.record).expect("JSON");
                record["object"].as_str().expect("an object").to_owned()
            })
            .collect();
        let want: Vec<_> =
            (0..load.records.load(Ordering::Relaxed)).map(|n| format!("/{n}")).collect();
        assert!(objects == want, "{} records of {}", objects.len(), want.len());
        assert!(load.changes.load(Ordering::Relaxed) > 0, "changes reached run {n}");
    }
    let sum = |count: fn(&Load) -> u64| loads.iter().map(|load| count(load)).sum::<u64>();
    println!(
        "{restarts} restarts in {:?}, away {away:?}: {} queries, {} records, all in the journal",
        begin.elapsed(),
        sum(|load| load.queries.load(Ordering::Relaxed)),
        sum(|load| load.records.load(Ordering::Relaxed)),
    );
    daemon.kill();
}
