//! What a manager shares with the thread that follows the policy.

use crate::{Record, Status, hold::Hold};
use avc::Avc;
use flask::{Classes, Seqno};

/// Is called with each record.
pub(crate) type AuditHook = Box<dyn Fn(&Record) + Send + Sync>;
/// Is called with the number of each policy.
pub(crate) type ChangeHook = Box<dyn Fn(Seqno) + Send + Sync>;

/// What the program wants to be told.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) audit: Option<AuditHook>,
    pub(crate) change: Option<ChangeHook>,
}

/// What the manager shares with the thread that follows the policy.
pub(crate) struct Parts {
    pub(crate) avc: Avc,
    pub(crate) classes: Classes,
    pub(crate) status: Status,
    pub(crate) lacking: Vec<(String, String)>,
    pub(crate) hooks: Hooks,
}

impl Parts {
    /// Makes a policy state hold here; with `loaded`, a new policy that denies what it does not
    /// know, or not.
    pub(crate) fn apply(&self, seqno: Seqno, loaded: Option<bool>) {
        self.avc.reset(seqno);
        self.status.change(loaded);
    }

    /// Tells the program of a change of its own. With a daemon, the thread that follows does so.
    pub(crate) fn tell(&self, hold: &Hold, seqno: Seqno) {
        if let Hold::Own(_) = hold {
            self.told(seqno);
        }
    }

    /// The program hears of it, and may ask for the next change meanwhile.
    pub(crate) fn told(&self, seqno: Seqno) {
        if let Some(change) = &self.hooks.change {
            change(seqno);
        }
    }
}
