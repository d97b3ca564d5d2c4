//! Changes of policy while a sandbox runs, and the permissions that have left the cache by then:
//! open descriptors, mappings, connections, calls under way.

mod change;
mod held;
mod hold;
mod made;
mod maps;
mod naming;
mod receipt;
mod relabel;
mod repair;
mod sockets;
mod taking;

use crate::gate::Gate;
use confine::{Conflict, ReadError};
use flask::Unreachable;
pub use hold::Hold;
pub(crate) use hold::{freeze, hold};
pub use naming::ByName;
use naming::NamedFiles;
pub use receipt::{Action, Held, Holder, Receipt, RevokeMode};
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
    /// What the kernel was told at the start of the run says otherwise. Nothing has happened.
    #[error(transparent)]
    Settled(#[from] Conflict),
    /// The processes of the sandbox cannot be listed.
    #[error("cannot look into the sandbox: {0}")]
    System(#[from] Errno),
}

impl From<ReadError> for ApplyError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Server(error) => error.into(),
            ReadError::Label(error) => error.into(),
        }
    }
}

/// Makes the policy that the security server has now hold in the run of `gate`; see
/// [`crate::Control::apply_naming`].
pub(crate) fn apply(
    gate: &Arc<Gate>,
    mode: RevokeMode,
    named: ByName<'_>,
) -> Result<Receipt, ApplyError> {
    if gate.off {
        return Ok(Receipt { complete: true, ..Receipt::default() });
    }
    let mut standby =
        gate.state.targets.quiesce.changing.lock().unwrap_or_else(PoisonError::into_inner);
    let (receipts, receipt) = mpsc::channel();
    let gate = Arc::clone(gate);
    let named = NamedFiles::new(named)?;
    standby.begin(move |end| change::run(&gate, (mode, named), &receipts, end))?;
    receipt.recv().unwrap_or(Err(ApplyError::System(Errno::CANCELED)))
}
