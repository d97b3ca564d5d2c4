//! What was in force in a run, and what was changed.

use super::Basis;
use crate::control::Change;
use profile::{Amendment, Compiled, Variables};
use std::{cell::OnceCell, collections::VecDeque, sync::Arc};

/// Policies whose rules can still be explained at the end of the run.
const MOST: usize = 64;

/// The policies so far. Only what they were compiled from is kept: few are asked for again.
#[derive(Clone)]
pub(super) struct Policies(VecDeque<Held>);

#[derive(Clone)]
struct Held {
    /// The state of the security server from which on it held.
    from: u32,
    basis: Arc<Basis>,
    /// How many of the run's amendments were in it.
    amendments: usize,
}

impl Policies {
    pub(super) fn beginning_with(basis: &Arc<Basis>) -> Self {
        Self(VecDeque::from([Held { from: 0, basis: Arc::clone(basis), amendments: 0 }]))
    }

    /// From the state `from` on, `basis` holds with the first `amendments`.
    pub(super) fn push(&mut self, from: u32, basis: &Arc<Basis>, amendments: usize) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(Held { from, basis: Arc::clone(basis), amendments });
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct History {
    policies: Vec<(Held, OnceCell<Option<Compiled>>)>,
    amendments: Vec<Amendment>,
    variables: Variables,
    pub(crate) changes: Vec<Change>,
}

impl History {
    pub(super) fn new(
        policies: &Policies,
        amendments: &[Amendment],
        variables: &Variables,
        changes: &[Change],
    ) -> Self {
        Self {
            policies: policies.0.iter().map(|held| (held.clone(), OnceCell::new())).collect(),
            amendments: amendments.to_vec(),
            variables: variables.clone(),
            changes: changes.to_vec(),
        }
    }

    /// The policy of the state `seqno` of the security server, if it is still known.
    pub(crate) fn policy(&self, seqno: u32) -> Option<&Compiled> {
        let (held, compiled) = self.policies.iter().rfind(|(held, _)| held.from <= seqno)?;
        let compile = || held.basis.compile(&self.variables, &self.amendments[..held.amendments]);
        compiled.get_or_init(|| compile().ok()).as_ref()
    }
}
