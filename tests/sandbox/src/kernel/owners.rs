//! Files of other owners.

use crate::{
    Case, cases,
    process::run,
    stage::{Stage, bash},
};

pub(super) const CASES: &[Case] = cases![
    root_works_in_a_directory_of_another_owner,
    a_capability_that_would_help_is_named,
    files_are_not_given_to_others,
];

/// Nobody of the machine; whoever runs a case is not.
const ANOTHER: &str = "65534";

fn root_works_in_a_directory_of_another_owner(stage: &Stage) {
    if !stage.variant.is_root() {
        // It is about root.
        return;
    }
    let before = format!(
        "mkdir d; echo old > d/old; echo old > private; chmod 600 private; chmod 700 d; chown -R {ANOTHER}:{ANOTHER} ."
    );
    stage
        .same(
            "set -e; echo new > new; echo more >> private; mkdir d/e; mv d/old d/e/; ln -s x d/l; rm d/l
             chmod 640 private; cp private copy; truncate -s 3 private; cat private copy new
             touch -d 2020-01-01T00:00:00Z private; stat -c '%n %u %a %Y' private; rm -r d",
        )
        .before(&before)
        .check();
    stage.prepare("chown -R 0:0 .");
}

fn a_capability_that_would_help_is_named(stage: &Stage) {
    if !stage.variant.is_root() {
        return;
    }
    stage.prepare(&format!("mkdir d; touch mine d/open; chmod 644 d/open; chown -R {ANOTHER} d"));
    for (script, capability) in [
        ("mkdir d/new", "dac_override"),
        ("echo > d/new", "dac_override"),
        ("echo > d/open", "dac_override"),
        ("rm d/open", "dac_override"),
        ("chmod 600 d/open", "fowner"),
        ("chown 1 mine", "chown"),
    ] {
        let ran = run(stage.dewar(stage.call(), &bash(&format!("{script} || exit 3"))), b"");
        assert_eq!(ran.code(), 3, "{script}: {}", ran.err());
        let named = format!("capabilities = [\"{capability}\"]");
        assert!(ran.err().contains(&named), "{script}: {}", ran.err());
        let explained = run(stage.control(&["explain"]), b"");
        assert!(explained.out().contains(&named), "{script}: {}", explained.out());
    }
    let ran = run(stage.dewar(stage.call(), &bash("touch mine; test -w d || exit 0")), b"");
    assert!(!ran.err().contains("capabilities"), "{}", ran.err());
}

/// Root may natively.
fn files_are_not_given_to_others(stage: &Stage) {
    if stage.variant.is_root() {
        return;
    }
    stage
        .same(
            "touch f; for id in 0 1 12345 65534 4000000000; do chown $id f; chgrp $id f; chown -h $id f; done
             python3 -c \"import os
for id in [0, 1, 12345, 65534]:
    for call in [lambda: os.chown('f', id, -1), lambda: os.chown('f', -1, id), lambda: os.fchown(os.open('f', 0), id, id)]:
        try: call(); print(id, 'given')
        except OSError as error: print(id, error.errno)\"",
        )
        .check();
}
