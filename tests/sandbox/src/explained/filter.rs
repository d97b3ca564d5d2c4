//! Every case in which the filter refuses, as its own table lists them.

use super::explained;
use crate::{Case, cases, dewar::Call, process::run, stage::Stage};
use confine::{Only, Refused, refusals};

pub(super) const CASES: &[Case] = cases![every_refusal_of_the_filter_is_explained];

/// Makes each call of its input, a line each, and says with which errno it ended.
const PERFORMER: &str = "import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
for line in sys.stdin:
    words = [ctypes.c_ulong(int(word)) for word in line.split()]
    result = libc.syscall(*words)
    print(0 if result >= 0 else ctypes.get_errno(), flush=True)
";

/// Once with one domain, and once with several, in which more is refused.
fn every_refusal_of_the_filter_is_explained(stage: &Stage) {
    let several = "extends = 'workspace'\n[domains.other]\nexec = ['/usr/bin/tac']\n";
    let profile = stage.profile(several);
    let all = refusals();
    let of_one = all.iter().filter(|it| match it.only {
        Only::Always => true,
        Only::SharedObjects => !stage.variant.has_namespaces(),
        Only::Domains => false,
    });
    check(stage, None, &of_one.copied().collect::<Vec<_>>());
    check(stage, Some(&profile), &all);
}

fn check(stage: &Stage, profile: Option<&str>, rows: &[Refused]) {
    let line = |row: &Refused| {
        let args: String = row.args.iter().map(|arg| format!(" {arg}")).collect();
        format!("{}{args}\n", row.call.id())
    };
    let input: String = rows.iter().map(line).collect();
    let words = ["python3".into(), "-c".into(), PERFORMER.into()];
    let ran = run(stage.dewar(Call { profile, ..stage.call() }, &words), input.as_bytes());
    let answers: Vec<i32> = ran.out().lines().map(|line| line.parse().expect("an errno")).collect();
    assert_eq!(answers.len(), rows.len(), "{}", ran.err());
    let (record, told) = (stage.record(), explained(stage));
    let mut faults = Vec::new();
    for (row, answer) in rows.iter().zip(answers) {
        if answer != row.errno {
            faults.push(format!("{row:?} ended with errno {answer}"));
        }
        let is_it = |it: &&crate::record::Denial| it.call == row.call.name();
        let denials: Vec<_> = record.denials.iter().filter(is_it).collect();
        let layer = "the system-call filter";
        if !row.is_recorded {
            // A call of which another case is recorded tells nothing of this one.
            continue;
        }
        if !denials.iter().any(|it| it.refused_by == layer && !it.reason.is_empty()) {
            faults.push(format!("{row:?} left no record"));
        }
        let name = row.call.name();
        // What is the name of a permission, too, is told as one.
        if !["may not call ", "may not "].iter().any(|it| told.contains(&format!("{it}{name}"))) {
            faults.push(format!("{row:?} is not explained"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(told.contains("refused by   the system-call filter"), "{told}");
    // What was refused in the kernel alone.
    assert!(told.contains("what leaves no record where it is refused"), "{told}");
    assert!(told.contains("the system-call filter: calls, options and commands"), "{told}");
}
