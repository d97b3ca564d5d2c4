//! Attacks on the control socket of the attacker's own run.

use crate::{
    Case, cases,
    dewar::Call,
    stage::{Stage, held},
};

pub(crate) const CASES: &[Case] = cases![taking_over_its_own_run];

/// A profile that names the directory of runs, and connecting to what is in it, gives nothing of
/// it.
fn taking_over_its_own_run(stage: &Stage) {
    let runtime = stage.directory("runtime");
    let runs = runtime.join("dewar/runs");
    let rules = format!(
        "[files]\nwrite = [\"{0}/dewar/runs\"]\nexec = [\"{0}/dewar/runs\"]\n[network]\nconnect = [\"unix:{0}\", \"unix:@*\"]",
        runtime.display()
    );
    let profile = stage.profile(&rules);
    for fast in [false, true] {
        let call = Call { fast, ..stage.call(&profile) };
        let mut attack = stage.command(call, "control", &[runs.to_str().expect("UTF-8")]);
        let output = attack.env("XDG_RUNTIME_DIR", &runtime).output().expect("start `dewar`");
        held(&output);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("held: the directory of runs cannot be listed"), "{said}");
        assert!(!said.contains("connected to "), "{said}");
    }
    let left = std::fs::read_dir(runs).expect("the directory of runs").count();
    assert_eq!(left, 0, "a run has left its socket");
}
