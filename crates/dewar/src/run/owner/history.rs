//! What was in force in a run, and what was changed.

use super::resolved_profile::ResolvedProfile;
use crate::control::PolicyChange;
use profile::{Amendment, Compiled, Variables};
use std::{cell::OnceCell, collections::VecDeque, sync::Arc};

/// Changes that are kept for the history.
pub(crate) const MOST_CHANGES: usize = 1_000;
/// How much of its receipt is kept of each.
const MOST_RECEIPT: usize = 8 << 10;
/// Policies whose rules can still be explained at the end of the run.
const MOST: usize = 64;

/// Keeps a change; the oldest make room.
pub(super) fn remember(changes: &mut Vec<PolicyChange>, change: &PolicyChange) {
    if changes.len() >= MOST_CHANGES {
        changes.remove(0);
    }
    changes.push(change.shortened(MOST_RECEIPT));
}

/// The policies so far. Only what they were compiled from is kept: few are asked for again.
#[derive(Clone)]
pub(super) struct Policies(VecDeque<Held>);

#[derive(Clone)]
struct Held {
    /// The state of the security server from which on it held.
    from: u32,
    profile: Arc<ResolvedProfile>,
    amendments: Arc<[Amendment]>,
}

impl Policies {
    pub(super) fn beginning_with(
        profile: &Arc<ResolvedProfile>,
        amendments: &Arc<[Amendment]>,
    ) -> Self {
        let amendments = Arc::clone(amendments);
        Self(VecDeque::from([Held { from: 0, profile: Arc::clone(profile), amendments }]))
    }

    /// From the state `from` on, `profile` holds with `amendments`.
    pub(super) fn push(
        &mut self,
        from: u32,
        profile: &Arc<ResolvedProfile>,
        amendments: &Arc<[Amendment]>,
    ) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        let (profile, amendments) = (Arc::clone(profile), Arc::clone(amendments));
        self.0.push_back(Held { from, profile, amendments });
    }
}

/// The policies that a run had, and the changes between them.
#[derive(Default)]
pub(crate) struct History {
    policies: Vec<(Held, OnceCell<Option<Compiled>>)>,
    variables: Variables,
    pub(crate) changes: Vec<PolicyChange>,
}

impl History {
    pub(super) fn new(
        policies: &Policies,
        variables: &Variables,
        changes: &[PolicyChange],
    ) -> Self {
        Self {
            policies: policies.0.iter().map(|held| (held.clone(), OnceCell::new())).collect(),
            variables: variables.clone(),
            changes: changes.to_vec(),
        }
    }

    /// The policy of the state `seqno` of the security server, if it is still known.
    pub(crate) fn policy(&self, seqno: u32) -> Option<&Compiled> {
        let (held, compiled) = self.policies.iter().rfind(|(held, _)| held.from <= seqno)?;
        let compile = || held.profile.compile(&self.variables, &held.amendments);
        compiled.get_or_init(|| compile().ok()).as_ref()
    }
}
