//! Programs that policy gives another domain.

use crate::{
    Case, cases,
    process::run,
    stage::{Stage, bash},
};

pub(super) const CASES: &[Case] = cases![a_domain_that_may_not_be_entered_is_not_done_without];

/// As Flask and SELinux have it: the exec fails, also where the program could be executed in the
/// caller's own domain.
fn a_domain_that_may_not_be_entered_is_not_done_without(stage: &Stage) {
    stage.prepare("cp /bin/true special");
    let special = stage.work().join("special");
    let context = "(dewar_u object_r special_t ((s0) (s0)))";
    let rules = format!(
        "(type other_t)(roletype dewar_r other_t)(type special_t)(roletype object_r special_t)
        (filecon \"{}\" any {context})(typetransition main_t special_t process other_t)
        (allow main_t special_t (file (getattr read open execute execute_no_trans)))",
        special.display()
    );
    let transition = "(allow main_t other_t (process (transition)))";
    for (added, missing) in [("", "transition"), (transition, "entrypoint")] {
        let cil = stage.home().join("policy.cil");
        stage.file(&cil, &format!("{rules}{added}"));
        let command = bash("./special && echo ran");
        let mut words = stage.under_dewar(stage.call(), &command);
        words.splice(2..2, ["--cil".into(), cil.into_os_string()]);
        let ran = run(stage.command(&words), b"");
        assert_eq!((ran.code(), ran.out()), (126, String::new()), "{missing}: {}", ran.err());
        let record = stage.record();
        let names = record.denials.iter().map(|denial| denial.missing.join(" "));
        assert!(names.clone().any(|name| name == missing), "{missing}: {:?}", record.denials);
    }
}
