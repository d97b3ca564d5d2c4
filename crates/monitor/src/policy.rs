//! The policy in force, as far as it concerns who answers a call: the kernel, or the monitor.

use confine::{Exactness, Plan};

/// What a policy comes to, within what the kernel was told at the start.
#[derive(Debug)]
pub(crate) struct PolicyState {
    pub(crate) plan: Plan,
    /// The same for the first domain alone, which the envelope is made for.
    pub(crate) first: Plan,
    /// Where the kernel refuses exactly what policy refuses.
    pub(crate) exactness: Exactness,
    /// The labelling rules.
    pub(crate) files: Vec<flask::FileRule>,
}

impl PolicyState {
    /// Whether the envelope does not let the program itself read what has this label, though policy
    /// may.
    pub(crate) fn opens(&self, label: flask::Sid, class: flask::Class) -> bool {
        (class == flask::Class::Dir && self.first.listed.contains(&label))
            || self.exactness.withheld.contains(&label)
    }
}
