//! What a manager shares with the thread that follows the policy.

use crate::{Record, Status};
use avc::Avc;
use flask::{Classes, Seqno};

/// What the program wants to be told.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) audit: Option<Box<dyn Fn(&Record) + Send + Sync>>,
    pub(crate) change: Option<Box<dyn Fn(Seqno) + Send + Sync>>,
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
        if let Some(change) = &self.hooks.change {
            change(seqno);
        }
    }
}
