//! Changes of policy while a sandbox runs, and the permissions that have left the cache by then: open descriptors,
//! mappings, connections, calls under way.

mod change;
mod flight;
mod held;
mod inject;
mod maps;
mod receipt;
mod sockets;
mod stop;

use crate::gate::Gate;
use flask::Unreachable;
pub use receipt::{Action, Held, Holder, Manner, Receipt};
use rustix::io::Errno;
use std::sync::{Arc, PoisonError, mpsc};

/// Why a change did not reach a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The security server does not answer.
    #[error(transparent)]
    Server(#[from] Unreachable),
    /// The labelling rules are unusable.
    #[error(transparent)]
    Label(#[from] labelling::BadRule),
    /// The new policy has a domain that a running sandbox cannot take in: what its kernel side tells apart was settled
    /// at its start.
    #[error(
        "the new policy lets the command enter another domain than the running one can: start it anew"
    )]
    Domains,
    /// Mode `fast`: the kernel lets the program read, without asking anybody.
    #[error(
        "this run leaves opens for reading to the kernel (mode `fast`), which cannot take them back; kill it, or start it in mode `all`"
    )]
    Reads,
    /// The processes of the sandbox cannot be listed.
    #[error("cannot look into the sandbox: {0}")]
    System(#[from] Errno),
}

/// A hold on a running sandbox.
#[derive(Clone)]
pub struct Control(Arc<Gate>);

/// A process of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProcessStatus {
    /// In the monitor's PID namespace.
    pub pid: u32,
    /// Its parent, likewise.
    pub parent: u32,
    /// Its name.
    pub comm: String,
    /// Its security context.
    pub context: String,
}

impl Control {
    pub(crate) fn new(gate: Arc<Gate>) -> Self {
        Self(gate)
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.0
    }

    /// Makes the policy that the security server has now hold here, for everything that is held already, too. Returns
    /// when the change is complete, or when it is known that it will not be.
    ///
    /// Changes come one after another: whoever changes the policy calls this before the next change.
    ///
    /// # Errors
    ///
    /// [`ApplyError`]; then the caller goes back to the policy before, and applies that, or ends the run.
    pub fn apply(&self, manner: Manner) -> Result<Receipt, ApplyError> {
        let gate = Arc::clone(&self.0);
        if gate.off {
            return Ok(Receipt { complete: true, ..Receipt::default() });
        }
        let (receipts, receipt) = mpsc::channel();
        let change = move || {
            let one_at_a_time = gate.changing.lock().unwrap_or_else(PoisonError::into_inner);
            change::run(&gate, manner, &receipts);
            drop(one_at_a_time);
        };
        let thread = std::thread::Builder::new().name("change".into());
        thread.spawn(change).map_err(|_| Errno::AGAIN)?;
        receipt.recv().unwrap_or(Err(ApplyError::System(Errno::CANCELED)))
    }

    /// Whether opens for reading never come to the monitor (mode `fast`), so that policy cannot change about them.
    #[must_use]
    pub fn leaves_reads(&self) -> bool {
        self.0.reads_pass
    }

    /// Whether a process, named in this PID namespace, certainly belongs neither to the sandbox nor is this one. Says
    /// no when in doubt. The caller holds the process, so that its number is its own.
    #[must_use]
    pub fn is_outside(&self, pid: u32) -> bool {
        self.0.view.is_outside(pid)
    }

    /// The processes of the sandbox.
    ///
    /// # Errors
    ///
    /// What the kernel says when they cannot be listed.
    pub fn processes(&self) -> Result<Vec<ProcessStatus>, Errno> {
        crate::process::all(&self.0)
    }

    /// Decisions asked for so far, by object manager.
    #[must_use]
    pub fn decisions(&self) -> Vec<(&'static str, avc::Stats)> {
        self.0.decisions()
    }

    /// What was denied so far, each kind once, the most frequent first; and how many kinds more there were than are
    /// kept.
    #[must_use]
    pub fn denials(&self) -> (Vec<crate::Record>, u64) {
        self.0.audit.denials()
    }
}
