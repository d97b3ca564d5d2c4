//! Attacks on the filter.

use crate::{Case, cases, stage::Stage};

pub(crate) const CASES: &[Case] = cases![
    filters_of_ones_own,
    calls_around_the_gate,
    acting_against_rules_of_ones_own,
    holding_up_who_writes_outside,
];

fn filters_of_ones_own(stage: &Stage) {
    let secret = stage.home().join(".ssh/id_ed25519");
    stage.holds("workspace", "own_filter", &[secret.to_str().expect("UTF-8")]);
}

/// A sandbox inside must not be weaker than outside.
fn acting_against_rules_of_ones_own(stage: &Stage) {
    stage.holds("workspace", "weaken_itself", &[]);
}

fn holding_up_who_writes_outside(stage: &Stage) {
    let readable = stage.file("readable", "");
    let readable = readable.to_str().expect("UTF-8");
    let profile = stage.profile(&format!("files.read = [{readable:?}]"));
    stage.holds(&profile, "hold_up", &[readable]);
}

fn calls_around_the_gate(stage: &Stage) {
    let secret = stage.home().join(".ssh/id_ed25519");
    stage.holds("workspace", "odd_calls", &[secret.to_str().expect("UTF-8")]);
}
