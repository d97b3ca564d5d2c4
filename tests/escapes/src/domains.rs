//! Attacks on the borders between domains of one sandbox.

use crate::{Case, cases, stage::Stage};

pub(crate) const CASES: &[Case] = cases![
    looking_into_another_domain,
    entering_a_domain_with_a_library,
    children_of_a_process_that_changes_its_domain,
    attaching_to_what_enters_a_domain,
    opening_files_of_what_enters_a_domain,
    taking_filters_and_personalities_into_a_domain,
];

/// The same files for both, but for one that only the vault may write.
fn vault(stage: &Stage) -> String {
    stage.program("work/vault", "vault");
    stage.file("vault", "untouched");
    stage.profile(
        "[domains.vault]\nexec = [\"${workspace}/vault\"]\nfiles.write = [\"${home}/vault\"]",
    )
}

fn looking_into_another_domain(stage: &Stage) {
    stage.holds(&vault(stage), "look_inside", &[]);
    // With the same rights on files, reading is left to the kernel where it can be.
    let same = stage.profile("[domains.vault]\nexec = [\"${workspace}/vault\"]");
    stage.holds(&same, "look_inside", &[]);
}

fn entering_a_domain_with_a_library(stage: &Stage) {
    let profile = vault(stage);
    stage.program("work/library", "library");
    stage.holds(&profile, "preload", &[]);
    assert!(!stage.work().join("loaded").exists(), "the library has been loaded");
}

fn children_of_a_process_that_changes_its_domain(stage: &Stage) {
    let profile = vault(stage);
    let file = stage.home().join("vault");
    let name = file.to_str().expect("UTF-8");
    stage.holds(&profile, "children", &[name]);
    stage.holds(&profile, "children", &[name, "and threads"]);
    assert_eq!(std::fs::read_to_string(file).expect("the file"), "untouched");
}

fn attaching_to_what_enters_a_domain(stage: &Stage) {
    stage.holds(&vault(stage), "attach", &[]);
}

fn opening_files_of_what_enters_a_domain(stage: &Stage) {
    stage.holds(&vault(stage), "exec_window", &[]);
}

fn taking_filters_and_personalities_into_a_domain(stage: &Stage) {
    stage.holds(&vault(stage), "take_along", &[]);
}
