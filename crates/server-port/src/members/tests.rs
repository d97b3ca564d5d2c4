use super::*;
use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    thread,
};

const SOON: Patience = Patience {
    report: Duration::from_millis(20),
    freeze: Duration::from_millis(60),
    kill: Duration::from_millis(120),
};

fn stages(
    members: &Arc<Members>,
    seqno: u32,
    act: impl Fn(Stage),
) -> (Vec<Acknowledged>, Vec<Stage>) {
    let mut seen = Vec::new();
    let done = members.complete(Seqno(seqno), SOON, |_, stage| {
        act(stage);
        seen.push(stage);
    });
    (done, seen)
}

#[test]
fn a_change_is_complete_when_every_member_has_said_so() {
    let members = Members::new(Seqno(1));
    thread::scope(|scope| {
        for n in 0..5 {
            let member = members.join(format!("m{n}"), Seqno(1), || true);
            scope.spawn(move || {
                let told = member.next(Seqno(1), b"", Duration::from_secs(10));
                assert_eq!(told, Progress::Later(Seqno(2)));
                assert_eq!(member.next(Seqno(2), b"ok", Duration::ZERO), Progress::Unchanged);
                assert_eq!(member.next(Seqno(2), b"", Duration::from_secs(10)), Progress::Stopped);
            });
        }
        let (done, seen) = stages(&members, 2, |_| {});
        assert_eq!((done.len(), seen.len()), (5, 0));
        assert!(done.iter().all(|m| m.outcome == MemberOutcome::Applied && m.report == b"ok"));
        members.stop();
    });
    assert_eq!(members.count(), 0);
}

#[test]
fn one_that_has_died_is_not_waited_for() {
    let members = Members::new(Seqno(1));
    let _dead = members.join("dead".into(), Seqno(1), || false);
    let (done, seen) = stages(&members, 2, |_| {});
    assert_eq!((done[0].outcome, seen.len()), (MemberOutcome::Gone, 0));
}

#[test]
fn one_that_does_not_answer_is_reported_then_frozen_then_killed() {
    let members = Members::new(Seqno(1));
    let lives = Arc::new(AtomicBool::new(true));
    let seen_by = Arc::clone(&lives);
    let _late = members.join("late".into(), Seqno(1), move || seen_by.load(Relaxed));
    let (done, seen) = stages(&members, 2, |stage| lives.store(stage != Stage::Kill, Relaxed));
    assert_eq!(seen, [Stage::Report, Stage::Freeze, Stage::Kill]);
    assert_eq!(done[0].outcome, MemberOutcome::Killed);
}

#[test]
fn one_that_cannot_be_killed_leaves_the_change_incomplete() {
    let members = Members::new(Seqno(1));
    let _stuck = members.join("stuck".into(), Seqno(1), || true);
    assert_eq!(stages(&members, 2, |_| {}).0[0].outcome, MemberOutcome::Unreached);
}

#[test]
fn one_that_answers_late_goes_on() {
    let members = Members::new(Seqno(1));
    let late = members.join("late".into(), Seqno(1), || true);
    let (done, seen) = stages(&members, 2, |stage| {
        if stage == Stage::Freeze {
            let _ = late.next(Seqno(2), b"", Duration::ZERO);
        }
    });
    assert_eq!(seen, [Stage::Report, Stage::Freeze, Stage::Thaw]);
    assert_eq!(done[0].outcome, MemberOutcome::Applied);
}

#[test]
fn one_that_survives_it_is_killed_again() {
    let members = Members::new(Seqno(1));
    let times = Arc::new(AtomicUsize::new(0));
    let seen_by = Arc::clone(&times);
    let _tough = members.join("tough".into(), Seqno(1), move || seen_by.load(Relaxed) < 3);
    let (done, seen) = stages(&members, 2, |stage| {
        times.fetch_add(usize::from(stage == Stage::Kill), Relaxed);
    });
    assert_eq!(seen[2..], [Stage::Kill; 3]);
    assert_eq!(done[0].outcome, MemberOutcome::Killed);

    let begin = Instant::now();
    let _stuck = members.join("stuck".into(), Seqno(1), || true);
    let (done, seen) = stages(&members, 3, |_| {});
    assert_eq!(done[0].outcome, MemberOutcome::Unreached);
    assert!(seen.len() < 16 && begin.elapsed() < Duration::from_secs(20), "{seen:?}");
}
