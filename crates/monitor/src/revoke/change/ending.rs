//! Processes that end by a change, for what cannot be taken from them.

use super::{Finding, LATE, PolicyTransition, Subject};
use crate::revoke::receipt::{Action, Held};
use mediation::subject::outer_label_of;
use rustix::io::Errno;
use std::time::Instant;
use supervisor::{PAUSE, lives, signal_inside};

impl PolicyTransition<'_> {
    /// A process that another traces, or whose program may not be read, cannot be stopped, and not
    /// be looked into soundly: it ends, if the change takes anything from anybody.
    pub(super) fn end_refused(&mut self, pid: u32) {
        if !self.comparison.takes() {
            return;
        }
        let ssid = outer_label_of(&self.gate.state, pid);
        let mut held = self.comparison.everything(pid, ssid).map(all).unwrap_or_default();
        if held.is_empty() {
            held.push(Finding::vague(Held::Unknown, "unknown"));
        }
        self.kill(pid, &held, "another process traces it, or its program may not be read");
        let until = Instant::now() + LATE;
        while lives(&self.gate.state.targets.tree, pid) {
            if Instant::now() > until {
                self.receipt.complete = false;
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Calls that were decided before and are still being made cannot be taken back: their
    /// processes end. What is made for somebody who has ended can come through all the same.
    pub(super) fn end_calls(&mut self, stuck: &[(u64, u32)]) {
        let gate = self.gate;
        let targets = &gate.state.targets;
        for (id, tid) in stuck {
            let identity = targets.tree.proc.identity(*tid);
            // Of a caller that is gone, another thread may have the number.
            match identity.ok().filter(|_| targets.listener.is_valid(*id)) {
                Some(identity) => {
                    let finding = Finding::vague(Held::Call, "a call that takes long");
                    self.kill(identity.pid, &[finding], "it was decided before the change");
                    self.stuck.insert(*id, identity.pid);
                }
                None => {
                    self.stuck.entry(*id).or_insert(*tid);
                }
            }
        }
    }

    /// Says which of these calls are still being made.
    pub(super) fn note_stuck(&mut self) {
        for (id, pid) in std::mem::take(&mut self.stuck) {
            if self.gate.state.targets.quiesce.is_inside(id) {
                let call = Finding::vague(Held::Call, "a call made on its behalf");
                self.note(pid, &call, Action::Kept, "it is being made and cannot be stopped");
            }
        }
    }

    pub(super) fn unknown(&mut self, pid: u32, error: Errno) {
        let finding = Finding::vague(Held::Unknown, "unknown");
        self.kill(pid, &[finding], &format!("it cannot be looked into: {error}"));
    }

    pub(super) fn kill(&mut self, pid: u32, findings: &[Finding], reason: &str) {
        let tree = &self.gate.state.targets.tree;
        let killed = signal_inside(tree, pid, libc::SIGKILL).is_ok();
        self.killed.insert(pid);
        for finding in findings {
            let action = if killed { Action::Killed } else { Action::Kept };
            self.note(pid, finding, action, reason);
        }
    }

    /// Waits until those that were killed are gone.
    pub(super) fn see_off(&mut self) {
        let until = Instant::now() + LATE;
        let mut left = self.killed.clone();
        loop {
            left.retain(|pid| lives(&self.gate.state.targets.tree, *pid));
            if left.is_empty() {
                return;
            }
            if Instant::now() > until {
                self.receipt.complete = false;
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn all(held: Vec<(Subject, Vec<Finding>)>) -> Vec<Finding> {
    held.into_iter().flat_map(|(_, findings)| findings).collect()
}
