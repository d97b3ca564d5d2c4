//! The mistakes found so far.

use super::{
    containers::{Container, Containers, Kind},
    errors::PolicyErrors,
    failure::Failure,
};
use crate::hash::HashSet;

/// The mistakes found so far, and the optionals to be dropped.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) failures: Vec<Failure>,
    pub(super) dropped: HashSet<Container>,
}

impl Report {
    pub(super) fn add(&mut self, failure: Failure) {
        if self.failures.len() < PolicyErrors::MOST {
            self.failures.push(failure.shortened());
        }
    }

    /// A statement in `at` failed: drops the optional around it, or counts as a mistake.
    pub(super) fn fail(&mut self, containers: &Containers, at: Container, failure: Failure) {
        let optional = |id: &Container| matches!(containers.get(*id).kind, Kind::Optional { .. });
        match (&failure, containers.around(at).find(optional)) {
            (Failure::Unknown { .. } | Failure::Missing { .. }, Some(optional)) => {
                self.dropped.insert(optional);
            }
            _ => self.add(failure),
        }
    }
}
