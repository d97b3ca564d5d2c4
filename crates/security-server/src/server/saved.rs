//! A server that goes on where another one stopped, or apart from it.

use super::{LabelBudget, LoadError, Mapping, Server, SidTable, State, UnknownBoolean, set};
use crate::{BoolId, engine::Engine, policy::Policy};
use arc_swap::{ArcSwap, ArcSwapOption};
use flask::{Classes, InitialSid, Seqno};
use std::sync::{Arc, PoisonError};

/// What has to be kept of a server beside its policy, so that SIDs keep their meaning and policy
/// states their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The policy state.
    pub seqno: Seqno,
    /// Every boolean by name.
    pub booleans: Vec<(String, bool)>,
    /// The contexts of all SIDs beyond the initial ones, in their order.
    pub contexts: Vec<String>,
}

impl Server {
    /// What [`Server::restore`] needs.
    #[must_use]
    pub fn save(&self) -> Saved {
        let state = self.state.load();
        let policy = state.engine.policy();
        let names = policy.booleans.keys().enumerate();
        let booleans = names
            .map(|(n, name)| (name.to_string(), state.engine.boolean(BoolId::at(n))))
            .collect();
        let contexts = state.sids.contexts(policy, InitialSid::COUNT);
        Saved { seqno: state.seqno, booleans, contexts }
    }

    /// The contexts of all SIDs with a greater number than `after`, in order; initial SIDs left
    /// out.
    #[must_use]
    pub fn contexts_after(&self, after: u32) -> Vec<String> {
        let state = self.state.load();
        state.sids.contexts(state.engine.policy(), after.max(InitialSid::COUNT))
    }

    /// A server with that policy that goes on where `saved` was taken. Booleans that the policy
    /// does not have are left out.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when the policy rejects what it does not know.
    pub fn restore(policy: Policy, saved: &Saved) -> Result<Self, LoadError> {
        Self::restore_with(policy, saved, Classes::default())
    }

    /// The same for a program that has classes of its own.
    ///
    /// # Errors
    ///
    /// As [`Server::restore`].
    pub fn restore_with(
        policy: Policy,
        saved: &Saved,
        classes: Classes,
    ) -> Result<Self, LoadError> {
        let mapping = Arc::new(Mapping::new(&policy, Arc::new(classes))?);
        let sids = Arc::new(SidTable::with_contexts(&policy, saved.contexts.iter()));
        let changes: Vec<_> = saved
            .booleans
            .iter()
            .filter_map(|(name, on)| {
                Some((BoolId::at(policy.booleans.get_index_of(name.as_str())?), *on))
            })
            .collect();
        let engine = Engine::new(policy).with_booleans(&changes);
        Ok(Self::at(State { engine, mapping, sids, seqno: saved.seqno }))
    }

    /// A server of its own with the same policy state and the same SIDs. What changes in one from
    /// now on does not in the other. Labels that both have are counted once ([`Server::within`]).
    #[must_use]
    pub fn fork(&self) -> Self {
        // No SID is added meanwhile.
        let _changing = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state.load();
        Self::at(State {
            engine: state.engine.clone(),
            mapping: Arc::clone(&state.mapping),
            sids: Arc::new(state.sids.copied()),
            seqno: state.seqno,
        })
    }

    /// This server as it would be with other booleans. Both have the same SIDs, also those that one
    /// of them gives out from now on.
    ///
    /// # Errors
    ///
    /// [`UnknownBoolean`].
    pub fn with_booleans(&self, changes: &[(&str, bool)]) -> Result<Self, UnknownBoolean> {
        let state = self.state.load();
        let engine = set(&state.engine, changes)?;
        let (mapping, sids) = (Arc::clone(&state.mapping), Arc::clone(&state.sids));
        let next = Self::at(State { engine, mapping, sids, seqno: Seqno(state.seqno.0 + 1) });
        Ok(Self { changes: Arc::clone(&self.changes), ..next })
    }

    /// This server, with its labels and those that it gives out later counted in `budget`. Without
    /// room there, a new label is [`flask::LabelError::Unreachable`]; those that it has are found.
    ///
    /// # Errors
    ///
    /// [`LoadError::Labels`].
    pub fn within(self, budget: &Arc<LabelBudget>) -> Result<Self, LoadError> {
        let state = self.state.load();
        let counted = state.sids.count_in(budget, state.engine.policy());
        counted.ok_or(LoadError::Labels)?;
        drop(state);
        Ok(self)
    }

    /// Bytes of the labels that are counted for this server.
    #[must_use]
    pub fn label_bytes(&self) -> usize {
        self.state.load().sids.taken()
    }

    pub(super) fn at(state: State) -> Self {
        Self {
            state: ArcSwap::from_pointee(state),
            before: ArcSwapOption::empty(),
            changes: Arc::default(),
        }
    }
}
