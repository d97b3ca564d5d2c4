//! Changes of policy while clients ask: what they see, and who says so when.

mod common;

use avc::{Avc, Hint};
use common::{Behind, POLICY, policy};
use flask::{Class, Question, SecurityServer as _, Seqno, perm};
use ipc::{Port, Transport};
use server_port::{Acknowledged, MemberOutcome, Patience, Stage};
use std::{
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Changes a boolean and waits until everybody has applied it.
fn change(behind: &Behind, open: bool) -> (Seqno, Vec<Acknowledged>) {
    let seqno = behind.policy.set_booleans(&[("open", open)]).unwrap();
    (
        seqno,
        behind
            .members
            .complete(seqno, Patience::default(), |name, stage| panic!("{name}: {stage:?}")),
    )
}

#[test]
fn when_a_change_is_complete_no_client_decides_by_the_policy_before() {
    let behind = Behind::start(policy(POLICY), Transport::Memory);
    let (stop, in_force) = (AtomicBool::new(false), AtomicU32::new(1));
    let ready = Barrier::new(5);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let server = Arc::new(behind.client());
                let avc = Avc::new(server.clone());
                let ssid = server.context_to_sid("u:r:app_t").unwrap();
                let tsid = server.context_to_sid("u:r:gate_t").unwrap();
                let q = Question { ssid, tsid, tclass: Class::File };
                thread::scope(|scope| {
                    scope.spawn(|| {
                        server.follow(Seqno(1), &stop, |change| {
                            avc.reset(change.seqno);
                            Some(Vec::new())
                        });
                    });
                    while behind.members.count() < 4 {
                        thread::sleep(Duration::from_millis(1));
                    }
                    ready.wait();
                    let hint = Hint::default();
                    while !stop.load(Ordering::Acquire) {
                        let complete = in_force.load(Ordering::Acquire);
                        let verdict = avc.has_perm(q, perm::file::READ, &hint).unwrap();
                        assert!(verdict.seqno.0 >= complete, "{verdict:?} after {complete}");
                        // The boolean is on in every even state.
                        assert_eq!(
                            verdict.granted(),
                            verdict.seqno.0.is_multiple_of(2),
                            "{verdict:?}"
                        );
                    }
                });
            });
        }
        ready.wait();
        for n in 0..50 {
            let (seqno, acknowledged) = change(&behind, n % 2 == 0);
            assert!(
                acknowledged.iter().all(|it| it.outcome == MemberOutcome::Applied),
                "{acknowledged:?}"
            );
            assert_eq!(acknowledged.len(), 4);
            in_force.store(seqno.0, Ordering::Release);
        }
        stop.store(true, Ordering::Release);
    });
}

#[test]
fn two_changes_at_once_come_one_after_the_other_and_both_are_complete() {
    let behind = Behind::start(policy(POLICY), Transport::Socket);
    let (stop, one_at_a_time) = (AtomicBool::new(false), Mutex::new(()));
    let applied = Mutex::new(Vec::new());
    let client = behind.client();
    thread::scope(|scope| {
        scope.spawn(|| {
            client.follow(Seqno(1), &stop, |change| {
                applied.lock().unwrap().push(change.seqno.0);
                Some(change.seqno.0.to_string().into_bytes())
            });
        });
        while behind.members.count() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let changers: Vec<_> = (0..2)
            .map(|n| {
                let (behind, one_at_a_time) = (&behind, &one_at_a_time);
                scope.spawn(move || {
                    let _changing = one_at_a_time.lock().unwrap();
                    change(behind, n == 0)
                })
            })
            .collect();
        for changer in changers {
            let (seqno, acknowledged) = changer.join().unwrap();
            assert_eq!(acknowledged[0].report, seqno.0.to_string().into_bytes());
        }
        stop.store(true, Ordering::Release);
    });
    assert_eq!(*applied.lock().unwrap(), [2, 3]);
}

#[test]
fn a_client_that_does_not_apply_holds_up_the_change_and_nobody_else() {
    let behind = Behind::start(policy(POLICY), Transport::Memory);
    let (stop, release) = (AtomicBool::new(false), AtomicBool::new(false));
    let (stuck, well) = (behind.client(), behind.client());
    let reached = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            stuck.follow(Seqno(1), &stop, |_| {
                while !release.load(Ordering::Acquire) {
                    thread::sleep(Duration::from_millis(1));
                }
                Some(b"late".to_vec())
            });
        });
        scope.spawn(|| {
            well.follow(Seqno(1), &stop, |_| {
                reached.store(true, Ordering::Release);
                Some(Vec::new())
            });
        });
        while behind.members.count() < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        let seqno = behind.policy.set_booleans(&[("open", true)]).unwrap();
        let patience = Patience {
            report: Duration::from_millis(100),
            freeze: Duration::from_millis(200),
            kill: Duration::from_secs(60),
        };
        let mut stages = Vec::new();
        let done = behind.members.complete(seqno, patience, |_, stage| {
            assert!(reached.load(Ordering::Acquire), "the other one has applied it long ago");
            assert_eq!(well.seqno(), Ok(seqno), "and is answered");
            release.store(stage == Stage::Freeze, Ordering::Release);
            stages.push(stage);
        });
        stop.store(true, Ordering::Release);
        assert_eq!(stages, [Stage::Report, Stage::Freeze, Stage::Thaw]);
        let late = done.iter().find(|it| it.stage.is_some()).expect("one was late");
        assert_eq!((late.outcome, late.report.as_slice()), (MemberOutcome::Applied, &b"late"[..]));
    });
}

#[test]
fn a_follower_that_was_away_applies_what_it_has_missed() {
    let mut behind = Behind::start(policy(POLICY), Transport::Memory);
    let (stop, seen) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let client = behind.client();
    thread::scope(|scope| {
        scope.spawn(|| {
            client.follow(Seqno(1), &stop, |change| {
                seen.lock().unwrap().push((change.before.0, change.seqno.0));
                Some(Vec::new())
            });
        });
        while behind.members.count() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        // Away; two changes; back.
        behind.restart_after(|behind| {
            behind.policy.set_booleans(&[("open", true)]).unwrap();
            let seqno = behind.policy.set_booleans(&[("open", false)]).unwrap();
            assert!(behind.members.complete(seqno, Patience::default(), |_, _| {}).is_empty());
        });
        let begin = Instant::now();
        while seen.lock().unwrap().is_empty() && begin.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Release);
    });
    assert_eq!(*seen.lock().unwrap(), [(1, 3)]);
}

/// `DEWAR_TESTS_QUERIES` (50,000 if not said otherwise) from 64 clients at once.
#[test]
fn sixty_four_clients_at_once_are_answered_by_policy() {
    let queries =
        std::env::var("DEWAR_TESTS_QUERIES").map_or(50_000, |n| n.parse().expect("a number"));
    let behind = Behind::start(policy(POLICY), Transport::Memory);
    let begin = Instant::now();
    thread::scope(|scope| {
        for n in 0..64 {
            let client = behind.client();
            scope.spawn(move || {
                let ssid = client.context_to_sid("u:r:app_t").unwrap();
                let targets = ["u:r:note_t", "u:r:secret_t", "u:r:log_t"];
                let tsids = targets.map(|context| client.context_to_sid(context).unwrap());
                let want =
                    [perm::file::READ | perm::file::WRITE, Default::default(), perm::file::APPEND];
                for k in 0..queries / 64 {
                    let which = (n + k) % 3;
                    let q = Question { ssid, tsid: tsids[which], tclass: Class::File };
                    assert_eq!(client.compute_av(q).unwrap().allowed, want[which]);
                }
            });
        }
    });
    println!("{queries} queries of 64 clients in {:?}", begin.elapsed());
}

#[test]
fn rubbish_is_answered_as_such_and_takes_nothing_from_others() {
    let behind = Behind::start(policy(POLICY), Transport::Memory);
    let client = behind.client();
    let mut port = Port::connect(behind.path(), Transport::Socket).unwrap();
    for length in [0, 1, 2, 7, 60, 4096, ipc::MAX_MESSAGE] {
        for first in [b'Q', 0, 255] {
            let mut message: Vec<u8> = (0..length).map(|n| (n * 31 + length) as u8).collect();
            message.first_mut().into_iter().for_each(|byte| *byte = first);
            // An answer, or the end of the session; never of the server.
            if port.call(&message).is_err() {
                port = Port::connect(behind.path(), Transport::Socket).unwrap();
            }
        }
    }
    assert_eq!(client.seqno(), Ok(Seqno(1)));
}

/// Queries in a twentieth of a second.
fn queries(client: &server_port::RemoteServer, q: Question) -> u32 {
    let begin = Instant::now();
    let mut count = 0;
    while begin.elapsed() < Duration::from_millis(50) {
        client.compute_av(q).unwrap();
        count += 1;
    }
    count
}

/// How much a client gets beside one that floods is printed, not asserted: it depends on the
/// machine. `DEWAR_TESTS_ROUNDS` rounds (5 if not said otherwise).
#[test]
fn a_client_that_floods_leaves_others_their_answers() {
    let rounds = std::env::var("DEWAR_TESTS_ROUNDS").map_or(5, |n| n.parse().expect("a number"));
    let behind = Behind::start(policy(POLICY), Transport::Memory);
    let client = behind.client();
    let ssid = client.context_to_sid("u:r:app_t").unwrap();
    let tsid = client.context_to_sid("u:r:note_t").unwrap();
    let q = Question { ssid, tsid, tclass: Class::File };
    for (what, message) in [("rubbish", vec![255; 4096]), ("queries", b"Q\x06".to_vec())] {
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            alone.push(queries(&client, q));
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let mut port = Port::connect(behind.path(), Transport::Memory).unwrap();
                    while !stop.load(Ordering::Acquire) {
                        port.call(&message).unwrap();
                    }
                });
                thread::sleep(Duration::from_millis(5));
                beside.push(queries(&client, q));
                stop.store(true, Ordering::Release);
            });
        }
        let median = |counts: &mut Vec<u32>| {
            counts.sort_unstable();
            counts[counts.len() / 2]
        };
        let (alone, beside) = (median(&mut alone), median(&mut beside));
        assert!(beside > 0);
        println!(
            "beside a flood of {what}: {beside} queries in 50 ms, alone {alone}: {:.2} times slower",
            f64::from(alone) / f64::from(beside),
        );
    }
}

/// A run that has its own policy replaced makes that hold itself: its follower is not told.
#[test]
fn what_was_before_is_known_also_after_changes_that_the_follower_was_not_told() {
    let behind = Behind::start(policy(POLICY), Transport::Socket);
    let (stop, client) = (AtomicBool::new(false), behind.client());
    let ssid = client.context_to_sid("u:r:app_t").unwrap();
    let tsid = client.context_to_sid("u:r:gate_t").unwrap();
    let q = Question { ssid, tsid, tclass: Class::File };
    let told = Mutex::new(Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            client.follow(Seqno(1), &stop, |change| {
                told.lock().unwrap().push((change.before, client.compute_av_before(q)));
                Some(Vec::new())
            });
        });
        while behind.members.count() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        for open in [true, false, true] {
            let before = client.compute_av(q).unwrap();
            let seqno = behind.policy.set_booleans(&[("open", open)]).unwrap();
            assert_eq!(client.compute_av_before(q), Ok(before), "{seqno:?}");
            client.applied(seqno);
        }
        let before = client.compute_av(q).unwrap();
        change(&behind, false);
        assert_eq!(told.lock().unwrap()[..], [(before.seqno, Ok(before))]);
        stop.store(true, Ordering::Release);
    });
}
