//! Any sequence of queries, policy changes, resets, late answers and failures gives the verdicts
//! that a security server without a cache could have given.

mod common;

use avc::{Hint, Verdict};
use common::{Server, question, reference};
use flask::{AccessVector, Seqno};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    /// Ask question `.0` for permissions `.1`, with hint `.2`.
    Ask(u32, u32, usize),
    /// The policy changes; the cache hears of it later.
    Change,
    /// The cache hears of the policy in force.
    Reset,
    /// The policy overtakes so many of the next answers.
    Overtake(u32),
    /// The server answers, or not.
    Down(bool),
}

const HINTS: usize = 4;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..250_u32, any::<u32>(), 0..HINTS).prop_map(|(q, r, h)| Step::Ask(q, r, h)),
        1 => Just(Step::Change),
        1 => Just(Step::Reset),
        1 => (0..12_u32).prop_map(Step::Overtake),
        1 => prop::bool::weighted(0.2).prop_map(Step::Down),
    ]
}

/// The verdict of policy `seqno`, worked out permission by permission.
fn expected(number: u32, requested: u32, verdict: Verdict) -> Verdict {
    let decision = reference(question(number), verdict.seqno);
    let (mut missing, mut allowed_on_record, mut denied_on_record) = (0, 0, 0);
    for bit in (0..32).map(|n| 1_u32 << n).filter(|bit| requested & bit != 0) {
        if decision.allowed.0 & bit == 0 {
            missing |= bit;
            denied_on_record |= decision.auditdeny.0 & bit;
        } else {
            allowed_on_record |= decision.auditallow.0 & bit;
        }
    }
    let audit = if missing == 0 { allowed_on_record } else { denied_on_record };
    Verdict {
        missing: AccessVector(missing),
        audit: AccessVector(audit),
        permissive: decision.permissive,
        ..verdict
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_cache_answers_as_the_policy_in_force_would(
        entries in 1..64_usize,
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let (server, avc) = Server::with_cache(entries);
        let hints: [Hint; HINTS] = Default::default();
        let (mut asked, mut down) = (0, false);
        // The newest policy that the cache knows of: from a reset, or from an answer.
        let mut floor = Seqno(0);
        for step in steps {
            match step {
                Step::Change => drop(server.change()),
                Step::Reset => {
                    floor = server.policy();
                    avc.reset(floor);
                }
                Step::Overtake(answers) => server.overtake(answers),
                Step::Down(now) => {
                    down = now;
                    server.set_down(now);
                }
                Step::Ask(number, requested, hint) => {
                    asked += 1;
                    let answer =
                        avc.has_perm(question(number), AccessVector(requested), &hints[hint]);
                    if let Ok(verdict) = answer {
                        prop_assert_eq!(verdict, expected(number, requested, verdict));
                        prop_assert!(verdict.seqno >= floor);
                        prop_assert!(verdict.seqno <= server.policy());
                    } else {
                        prop_assert!(down, "denied without reason");
                    }
                    floor = floor.max(avc.current());
                    prop_assert_eq!(avc.stats().queries(), asked);
                }
            }
        }
    }
}
