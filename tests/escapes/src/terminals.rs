//! Attacks on the terminal.

use crate::{
    Case, cases,
    stage::{Stage, Variant, held},
};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

pub(crate) const CASES: &[Case] = cases![typing_into_terminals_and_reading_others];

fn typing_into_terminals_and_reading_others(stage: &Stage) {
    if stage.variant == Variant::Bare {
        // Without a view, the terminals of the same user cannot be told apart.
        return;
    }
    let other = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&other).expect("grant it");
    unlockpt(&other).expect("unlock it");
    let name = ptsname(&other, Vec::new()).expect("its name").into_string().expect("UTF-8");
    stage.give(name.as_ref());
    held(
        &stage
            .command(stage.call("workspace"), "inject", &[&name])
            .output()
            .expect("start `dewar`"),
    );
}
