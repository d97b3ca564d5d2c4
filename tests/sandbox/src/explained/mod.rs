//! Every refusal is explained: each is provoked in a sandbox, and `dewar explain` names it with the
//! layer that refused. What the kernel refuses without telling anybody, no end of a run calls
//! nothing.

mod filter;
mod layers;

use crate::{process::run, stage::Stage};

/// The cases of this part.
pub(crate) const CASES: &[&[crate::Case]] = &[filter::CASES, layers::CASES];

/// What `dewar explain` says of the last run, each denial for itself.
pub(crate) fn explained(stage: &Stage) -> String {
    run(stage.control(&["explain", "--all", "--verbose"]), b"").out()
}
