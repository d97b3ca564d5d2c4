//! What all object managers share: the processes, the policy, labels, caches, the audit trail.
//!
//! An object manager sees this and what it owns, not the gate and not another manager.

use crate::{inside::Inside, manager::Caches, subject::Processes};
use arc_swap::ArcSwap;
use audit::{Audit, Deeds, Remarks, attempt};
use confine::PolicyState;
use confine::Rights;
use flask::SecurityServer;
use inode_labels::Labels;
use std::sync::{Arc, atomic::AtomicI32};
use supervisor::{OnBehalf, Targets};

/// What deciding a call takes, whoever decides it.
pub(crate) struct MonitorState {
    /// The threads of the sandbox, and the way in for their calls.
    pub(crate) targets: Targets,
    pub(crate) server: Arc<dyn SecurityServer>,
    pub(crate) records: Records,
    /// What the policy in force comes to on this machine.
    pub(crate) policy: ArcSwap<PolicyState>,
    /// The labels of files.
    pub(crate) labels: Labels,
    /// The labels of processes.
    pub(crate) subjects: Processes,
    pub(crate) caches: Caches,
    /// The process group that the run has last made the foreground of the terminal; 0 for none.
    pub(crate) foreground: AtomicI32,
    /// As whom, and where, calls are made on a program's behalf.
    pub(crate) on_behalf: OnBehalf,
    /// The runs inside of this one.
    pub(crate) inside: Arc<Inside>,
}

/// What is told of the run.
pub(crate) struct Records {
    pub(crate) audit: Arc<Audit>,
    /// What was granted to be written, executed and contacted.
    pub(crate) deeds: Deeds,
    /// What is denied to nobody, and may still be why a program fails.
    pub(crate) remarks: Remarks,
}

impl MonitorState {
    /// Rights that the kernel refuses exactly where policy does: the program may make such calls
    /// itself.
    pub(crate) fn exact(&self) -> Rights {
        if attempt::lends() {
            return Rights::empty();
        }
        let policy = self.policy.load();
        let exactness = &policy.exactness;
        if self.subjects.are_alike() { exactness.first } else { exactness.all }
    }
}
