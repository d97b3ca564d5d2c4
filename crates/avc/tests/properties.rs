//! What a cache promises, one test a promise.

mod common;

use avc::{Avc, Hint, Source, Stats};
use common::{Server, question, reference};
use flask::{AccessVector, Class, Question, Seqno, Unreachable};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

const ANY: AccessVector = AccessVector(1);

/// Where the answer to `q` was found.
fn source(avc: &Avc, q: Question, hint: &Hint) -> Source {
    avc.has_perm(q, ANY, hint).expect("an answer").source
}

#[test]
fn an_answer_is_found_at_the_server_then_at_the_hint_and_without_it_in_the_cache() {
    let (_server, avc) = Server::with_cache(16);
    let hint = Hint::default();
    assert_eq!(source(&avc, question(1), &hint), Source::Server);
    assert_eq!(source(&avc, question(1), &hint), Source::Hint);
    // Another object's hint lies elsewhere once it was used for another question.
    let other = Hint::default();
    source(&avc, question(2), &other);
    assert_eq!(source(&avc, question(1), &other), Source::Cache);
    assert_eq!(source(&avc, question(1), &other), Source::Hint);
    assert_eq!(avc.stats(), Stats { hint: 2, cache: 1, server: 2 });
    assert_eq!(avc.stats().queries(), 5);
}

#[test]
fn a_hint_that_points_at_another_answer_grants_nothing() {
    let (_server, avc) = Server::with_cache(16);
    let hint = Hint::default();
    for number in 0..100 {
        let q = question(number);
        let verdict = avc.has_perm(q, AccessVector::ALL, &hint).expect("an answer");
        assert_eq!(verdict.missing, AccessVector(!reference(q, Seqno(0)).allowed.0));
    }
}

#[test]
fn classes_of_the_same_pair_of_sids_are_kept_apart() {
    let (_server, avc) = Server::with_cache(64);
    let hint = Hint::default();
    for tclass in Class::all().chain(Class::all()) {
        let q = Question { tclass, ..question(7) };
        let verdict = avc.has_perm(q, AccessVector::ALL, &hint).expect("an answer");
        assert_eq!(verdict.missing.0, !reference(q, Seqno(0)).allowed.0, "{tclass}");
    }
}

#[test]
fn after_a_reset_nothing_older_is_used() {
    let (server, avc) = Server::with_cache(64);
    let hints: Vec<Hint> = (0..50).map(|_| Hint::default()).collect();
    for round in 0..5 {
        for (number, hint) in (0..).zip(&hints) {
            let verdict = avc.has_perm(question(number), ANY, hint).expect("an answer");
            assert_eq!((verdict.source, verdict.seqno), (Source::Server, Seqno(round)));
        }
        avc.reset(server.change());
    }
}

#[test]
fn a_reset_to_an_older_policy_changes_nothing() {
    let (_server, avc) = Server::with_cache(16);
    avc.reset(Seqno(0));
    let hint = Hint::default();
    source(&avc, question(1), &hint);
    avc.reset(Seqno(0));
    assert_eq!(source(&avc, question(1), &hint), Source::Hint);
}

#[test]
fn an_answer_of_a_newer_policy_ends_the_older_ones_before_the_reset_comes() {
    let (server, avc) = Server::with_cache(64);
    let (old, new) = (Hint::default(), Hint::default());
    source(&avc, question(1), &old);
    let seqno = server.change();
    source(&avc, question(2), &new);
    assert_eq!(avc.current(), seqno);
    assert_eq!(source(&avc, question(1), &old), Source::Server);
}

#[test]
fn a_late_answer_is_neither_used_nor_kept() {
    let (server, avc) = Server::with_cache(16);
    let hint = Hint::default();
    server.overtake(3);
    let verdict = avc.has_perm(question(1), AccessVector::ALL, &hint).expect("an answer");
    assert_eq!(verdict.seqno, Seqno(3));
    assert_eq!(verdict.missing.0, !reference(question(1), Seqno(3)).allowed.0);
    assert_eq!(source(&avc, question(1), &hint), Source::Hint);
    assert_eq!(avc.stats().server, 1, "one query, however often it was asked");
}

#[test]
fn a_policy_that_changes_during_every_answer_is_caught_up_with() {
    let (server, avc) = Server::with_cache(16);
    server.overtake(1000);
    let verdict = avc.has_perm(question(1), ANY, &Hint::default()).expect("an answer");
    assert_eq!(verdict.seqno, Seqno(1000));
}

#[test]
fn a_server_whose_answers_stay_behind_counts_as_unreachable() {
    let (server, avc) = Server::with_cache(16);
    server.change();
    avc.reset(Seqno(2));
    assert_eq!(avc.has_perm(question(1), ANY, &Hint::default()), Err(Unreachable));
    server.change();
    assert!(avc.has_perm(question(1), ANY, &Hint::default()).is_ok());
}

#[test]
fn without_a_server_what_is_known_is_answered_and_nothing_else() {
    let (server, avc) = Server::with_cache(16);
    let (known, unknown) = (Hint::default(), Hint::default());
    source(&avc, question(1), &known);
    server.set_down(true);
    assert_eq!(source(&avc, question(1), &known), Source::Hint);
    assert_eq!(avc.has_perm(question(2), ANY, &unknown), Err(Unreachable));
    avc.reset(server.change());
    let asked = avc.ask(question(1), ANY, &known);
    assert_eq!((asked.granted(), asked.missing(), asked.is_recorded()), (false, ANY, true));
    assert_eq!(avc.stats(), Stats { hint: 1, cache: 0, server: 3 });
}

#[test]
fn as_many_answers_as_promised_are_kept_but_for_a_hundredth() {
    for entries in [10, 1_000, 65_536, 1_000_000] {
        let (_server, avc) = Server::with_cache(entries as usize);
        (0..entries).for_each(|n| _ = source(&avc, question(n), &Hint::default()));
        (0..entries).for_each(|n| _ = source(&avc, question(n), &Hint::default()));
        let lost = avc.stats().server - u64::from(entries);
        assert!(lost * 100 <= u64::from(entries), "{lost} of {entries} were dropped");
    }
}

#[test]
fn labels_without_end_do_not_grow_the_cache() {
    let (_server, avc) = Server::with_cache(64);
    (0..100_000).for_each(|n| _ = source(&avc, question(n), &Hint::default()));
    let before = avc.stats().server;
    (0..100_000).for_each(|n| _ = source(&avc, question(n), &Hint::default()));
    // 64 entries are promised 128 slots; whatever is not in them was asked again.
    assert!(avc.stats().server - before >= 100_000 - 128);
}

#[test]
fn under_threads_every_verdict_is_whole_and_no_older_than_the_last_finished_reset() {
    let (server, avc) = Server::with_cache(32);
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        for first in 0..3 {
            let (avc, finished) = (&avc, &finished);
            scope.spawn(move || {
                let hint = Hint::default();
                let mut number = first;
                while !finished.load(Ordering::Relaxed) {
                    number = (number * 7 + 1) % 97;
                    let floor = avc.current();
                    let q = question(number);
                    // Overtaken eight times in a row: denied, as it should be.
                    let Ok(verdict) = avc.has_perm(q, AccessVector::ALL, &hint) else { continue };
                    let want = reference(q, verdict.seqno);
                    assert!(verdict.seqno >= floor);
                    assert_eq!(verdict.missing.0, !want.allowed.0, "{q:?}");
                    assert_eq!(verdict.permissive, want.permissive);
                }
            });
        }
        for _ in 0..20_000 {
            avc.reset(server.change());
        }
        finished.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_is_kept_grants_what_a_check_would_grant_without_a_record_and_nothing_else() {
    let (server, avc) = Server::with_cache(64);
    for number in 0..40 {
        let (q, hint) = (question(number), Hint::default());
        assert!(!avc.grants_kept(q, ANY, &hint), "nothing is kept yet");
        for requested in (0..64).map(AccessVector) {
            let verdict = avc.has_perm(q, requested, &hint).expect("an answer");
            let plainly =
                verdict.missing.is_empty() && verdict.audit.is_empty() && !requested.is_empty();
            let before = avc.stats().queries();
            assert_eq!(avc.grants_kept(q, requested, &hint), plainly, "{number} {requested:?}");
            assert_eq!(avc.grants_at_hint(q, requested, &hint), plainly);
            // In the cache, without its hint.
            assert_eq!(avc.grants_kept(q, requested, &Hint::default()), plainly);
            assert_eq!(avc.stats().queries() - before, 3 * u64::from(plainly));
        }
        avc.reset(server.change());
        let older = (0..64).map(AccessVector).any(|requested| {
            avc.grants_kept(q, requested, &hint) || avc.grants_at_hint(q, requested, &hint)
        });
        assert!(!older, "it is older than the policy");
    }
}
