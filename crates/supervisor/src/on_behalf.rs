//! As whom, and where, a call is made on a program's behalf.

use crate::{fs_state::FsState, missing_capabilities::MissingCapabilities};

/// CAP_SETUID and CAP_SETGID: with them a process can stop being who it was launched as.
const CHANGES_IDS: u64 = 1 << 7 | 1 << 6;

/// IDs and capabilities of the sandbox, and of the monitor where it acts for it; and where it does.
#[derive(Debug)]
pub struct OnBehalf {
    /// The IDs that every on-behalf operation is done with: the program's, unless it changed them.
    pub ids: (u32, u32),
    /// There are no other IDs in its user namespace.
    pub one_id: bool,
    /// Some domain has a capability that lets it change its IDs.
    pub ids_change: bool,
    /// The capabilities that the sandbox may have: bit n is capability n.
    pub capabilities: u64,
    /// What the kernel refuses root for want of a capability.
    pub lacking: MissingCapabilities,
    /// In which directory, and under which mask.
    pub fs_state: FsState,
}

impl OnBehalf {
    /// Of a sandbox of this process's user that may have `capabilities`; with `one_id`, in a user
    /// namespace that has no other.
    pub fn new(capabilities: u64, one_id: bool, fs_state: FsState) -> Self {
        Self {
            one_id,
            ids: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
            ids_change: capabilities & CHANGES_IDS != 0,
            capabilities,
            lacking: MissingCapabilities::new(capabilities),
            fs_state,
        }
    }
}
