//! Programs that policy gives another domain.

use crate::{
    Case, cases,
    dewar::Call,
    process::run,
    stage::{Stage, bash},
};

pub(super) const CASES: &[Case] = cases![
    a_domain_that_may_not_be_entered_is_not_done_without,
    a_script_that_would_enter_a_domain_fails_on_record,
    a_script_whose_interpreter_is_not_granted_fails_on_record,
    a_program_where_nothing_was_at_the_start_fails_on_record,
];

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

/// The kernel was told at the start what may be executed.
fn a_program_where_nothing_was_at_the_start_fails_on_record(stage: &Stage) {
    stage.prepare("mkdir ~/xdir");
    let profile = stage.profile(
        "extends = 'workspace'\nfiles.list = ['${home}/xdir']\nfiles.write = ['${home}/xdir/bin']\nfiles.exec = ['${home}/xdir/bin']\n",
    );
    let call = Call { profile: Some(&profile), ..stage.call() };
    let script = bash("mkdir -p ~/xdir/bin && cp /bin/true ~/xdir/bin/hello && ~/xdir/bin/hello");
    let ran = run(stage.dewar(call, &script), b"");
    assert_eq!(ran.code(), 126, "{}", ran.err());
    assert!(ran.err().contains("may not execute"), "{}", ran.err());
    let record = stage.record();
    record.explains("/xdir/bin/hello");
    let denial = &record.denials_of("/xdir/bin/hello")[0];
    assert!(denial.reason.contains("was not there when the run began"), "{denial:?}");
    let ran = run(stage.dewar(call, &script), b"");
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""));
}

/// What a script is started for is refused by no rule of policy; the record says so all the same.
fn a_script_that_would_enter_a_domain_fails_on_record(stage: &Stage) {
    stage.prepare("printf '#!/bin/sh\\necho ran\\n' > tool; chmod 755 tool");
    let profile = stage.profile(
        "extends = \"workspace\"\n[domains.other]\nexec = [\"${workspace}/tool\"]\nfrom = [\"main\"]\n",
    );
    let call = Call { profile: Some(&profile), ..stage.call() };
    let ran = run(stage.dewar(call, &bash("./tool")), b"");
    assert_eq!((ran.code(), ran.out()), (126, String::new()), "{}", ran.err());
    let record = stage.record();
    let found = record.denials_of("/tool");
    let refused = found.iter().find(|denial| denial.refused_by == "the process object manager");
    let refused = refused.unwrap_or_else(|| panic!("{:?}", record.denials));
    assert!(refused.reason.contains("it is a script"), "{refused:?}");
    let said = run(stage.control(&["explain"]), b"").out();
    assert!(said.contains("it is a script") && said.contains("instead"), "{said}");
}

/// The kernel executes an interpreter by itself, and is refused that without a word.
fn a_script_whose_interpreter_is_not_granted_fails_on_record(stage: &Stage) {
    let interpreter = stage.home().join("interpreter");
    let path = interpreter.display();
    stage.prepare(&format!("cp /bin/true {path}; printf '#!{path}\\n' > tool; chmod 755 tool"));
    for (read, codes) in [("", [126, 127]), ("files.read = [\"${home}/interpreter\"]", [126, 126])]
    {
        let profile = stage.profile(&format!("extends = \"workspace\"\n{read}\n"));
        let call = Call { profile: Some(&profile), ..stage.call() };
        let ran = run(stage.dewar(call, &bash("./tool")), b"");
        assert!(codes.contains(&ran.code()), "{read}: {} {}", ran.code(), ran.err());
        let record = stage.record();
        let found = record.denials_of("/interpreter");
        let is_told = found.iter().any(|denial| denial.missing.join(" ").contains("execute"));
        assert!(is_told, "{read}: {:?}", record.denials);
    }
}
