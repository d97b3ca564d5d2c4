//! Whether what was repaired by calls in a process's place is gone.

use super::{Finding, PolicyTransition, Subject};
use crate::revoke::receipt::Action;
use rustix::io::Errno;

/// Why a process is killed that makes other calls than it is to make.
const INTERFERED: &str = "its repair was interfered with";

/// Why a process is killed whose repair has failed.
pub(super) fn failure(error: Errno) -> String {
    match error {
        Errno::INTR => INTERFERED.to_owned(),
        Errno::TIMEDOUT => "it could not be repaired in time".to_owned(),
        error => format!("it could not be repaired: {error}"),
    }
}

impl PolicyTransition<'_> {
    /// Calls in a process's place pass through its own filters, which may answer them without
    /// making them: only what is seen to be gone is noted as done. `goes_on`: it is not killed
    /// anyway.
    pub(super) fn verify(&mut self, who: Subject, repaired: Vec<(Finding, Action)>, goes_on: bool) {
        let (findings, actions): (Vec<Finding>, Vec<Action>) = repaired.into_iter().unzip();
        let held = match findings.is_empty() || !goes_on {
            true => vec![false; findings.len()],
            false => match self.comparison.still_held(who, &findings) {
                Ok(held) => held,
                Err(error) => return self.unknown(who.pid, error),
            },
        };
        let mut rest = Vec::new();
        for ((finding, action), is_held) in findings.into_iter().zip(actions).zip(held) {
            match is_held {
                true => rest.push(finding),
                false => self.note(who.pid, &finding, action, ""),
            }
        }
        if !rest.is_empty() {
            self.kill(who.pid, &rest, INTERFERED);
        }
    }
}
