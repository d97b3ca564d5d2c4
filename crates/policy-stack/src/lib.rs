//! Policies one above the other: that of the run, and those of the runs inside.
//!
//! A process of a run inside has a compound SID: its label in the policy of the run, and one in
//! each policy that bounds it further. So has every object as such a process sees it. A permission
//! is granted if every one of these policies grants it: what a run inside gets is never more than
//! what was granted to whoever asked for it, whatever its own policy says, and that of the run is
//! never changed for it.
//!
//! A file with several labels in the policy of the run has a compound SID, too: nothing is granted
//! on it that is not granted on each.
//!
//! Source: the bounds of Spencer et al., "The Flask Security Architecture", USENIX Security 1999,
//! as a check by every policy on the way, as the namespaces of SELinux do it.
//!
//! ```text
//!  subject (compound SID) ─▶ Stack ─┬─▶ policy of the run ────────▶ decision ─┐
//!                                   ├─▶ layer 1, the run inside it ─▶ decision ─┼─▶ what all grant
//!                                   └─▶ layer 2, …                 ─▶ decision ─┘
//! ```
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![forbid(unsafe_code)]

#[cfg(test)]
mod bounded;
mod explained;
mod stack;
mod view;

use flask::SecurityServer;
use inode_labels::Labels;
use labelling::Networks;
use std::sync::Arc;

pub use stack::{Compound, Stack, is_compound};
pub use view::LabelView;

/// A policy that is asked beside that of the run, for the processes of one run inside.
pub struct Layer {
    /// No other layer of the run has, or had, this number.
    pub number: u32,
    /// What its profile is called.
    pub name: String,
    /// Decides by it.
    pub server: Arc<dyn SecurityServer>,
    /// The labels of files.
    pub labels: Labels,
    /// The labels of addresses and ports.
    pub networks: Networks,
    /// Bytes that it takes, about.
    pub bytes: usize,
}
