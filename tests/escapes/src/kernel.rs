//! Attacks on the filter.

use crate::{Case, cases, stage::Stage};

pub(crate) const CASES: &[Case] = cases![filters_of_ones_own, calls_around_the_gate];

fn filters_of_ones_own(stage: &Stage) {
    let secret = stage.home().join(".ssh/id_ed25519");
    stage.holds("workspace", "own_filter", &[secret.to_str().expect("UTF-8")]);
}

fn calls_around_the_gate(stage: &Stage) {
    let secret = stage.home().join(".ssh/id_ed25519");
    stage.holds("workspace", "odd_calls", &[secret.to_str().expect("UTF-8")]);
}
