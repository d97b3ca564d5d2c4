//! What all object managers share: the processes, the policy, labels, caches, the audit trail.
//!
//! An object manager sees this and what it owns, not the gate and not another manager.

use crate::{cache::Caches, inside::Inside, subject::Processes};
use arc_swap::ArcSwap;
use audit::{Activity, Audit, Remarks, attempt};
use confine::{PolicyState, Rights, launch::Given};
use flask::SecurityServer;
use inode_labels::Labels;
use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};
use supervisor::{OnBehalf, Room, Targets};

/// What deciding a call takes, whoever decides it.
pub struct MonitorState {
    /// The threads of the sandbox, and the way in for their calls.
    pub targets: Targets,
    /// Who decides.
    pub server: Arc<dyn SecurityServer>,
    /// What is told.
    pub records: Records,
    /// What the policy in force comes to on this machine.
    pub policy: ArcSwap<PolicyState>,
    /// The labels of files.
    pub labels: Labels,
    /// The labels of processes.
    pub subjects: Processes,
    /// What was decided.
    pub caches: Caches,
    /// As whom, and where, calls are made on a program's behalf.
    pub on_behalf: OnBehalf,
    /// The runs inside of this one.
    pub inside: Arc<Inside>,
    /// What the command works on: whoever made the links there, no program looks at them.
    pub workspace: PathBuf,
    /// What the caller of Dewar left open for the command.
    pub given: Given,
    /// What calls leave of the monitor's descriptors for control and changes.
    pub room: Room,
    /// Some process may share its table of descriptors with another (`CLONE_FILES`); noted where
    /// sends are decided.
    pub shares_descriptors: AtomicBool,
}

/// What is told of the run.
pub struct Records {
    /// Decisions, denials and refusals.
    pub audit: Arc<Audit>,
    /// What was granted to be written, executed and contacted.
    pub activity: Activity,
    /// What is denied to nobody, and may still be why a program fails.
    pub remarks: Remarks,
}

impl MonitorState {
    /// Rights that the kernel refuses exactly where policy does: the program may make such calls
    /// itself.
    pub fn exact(&self) -> Rights {
        if attempt::lends() {
            return Rights::empty();
        }
        let policy = self.policy.load();
        let exactness = &policy.exactness;
        // Where there are several domains, one may have left a link for another that is entered
        // later.
        let are_alike = self.subjects.are_alike() && self.subjects.policy_has_one_domain();
        if are_alike { exactness.first } else { exactness.all }
    }
}
