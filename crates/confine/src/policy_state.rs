//! The policy in force, as far as it concerns who answers a call: the kernel, or the monitor.

use crate::{confinement::Exactness, plan::Plan};

/// What a policy comes to, within what the kernel was told at the start.
#[derive(Debug)]
pub struct PolicyState {
    /// What its domains may do, and where.
    pub plan: Plan,
    /// The same for the first domain alone, which the envelope is made for.
    pub first: Plan,
    /// Where the kernel refuses exactly what policy refuses.
    pub exactness: Exactness,
    /// The labelling rules.
    pub files: Vec<flask::FileRule>,
}

impl PolicyState {
    /// Whether the envelope does not let the program itself read what has this label, though policy
    /// may.
    pub fn opens(&self, label: flask::Sid, class: flask::Class) -> bool {
        (class == flask::Class::Dir && self.first.listed.contains(&label))
            || self.exactness.withheld.contains(&label)
    }
}
