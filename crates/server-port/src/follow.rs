//! Following the policy: applying each change, and saying so.

use crate::{
    client::{RemoteServer, call},
    wire::{self, Answer, Query},
};
use flask::Seqno;
use ipc::Port;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// A server that has not even said that nothing changed is away.
const SILENCE: Duration = Duration::from_secs(5);

/// How long to wait before connecting again: at first, and after many attempts.
const RETRY: Duration = Duration::from_millis(20);
const RETRY_LATER: Duration = Duration::from_millis(500);

/// A change of policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyUpdate {
    /// The state that was applied last.
    pub before: Seqno,
    /// The state that is in force now. More than one higher if changes were missed.
    pub seqno: Seqno,
}

impl RemoteServer {
    /// Follows the policy from the state `applied` on until `stop`: `apply` is called for each
    /// change, and when it has returned the server is told so, with the bytes that it returned;
    /// `None` means that it does not hold, and it is tried again, while the server loses its
    /// patience. Every connection is made by this thread from here on; when the server comes back
    /// after an absence, what was missed is applied.
    pub fn follow(
        &self,
        applied: Seqno,
        stop: &AtomicBool,
        mut apply: impl FnMut(PolicyUpdate) -> Option<Vec<u8>>,
    ) {
        self.applied.store(applied.0, Ordering::Release);
        self.followed.store(true, Ordering::Release);
        let (mut applied, mut report) = (applied, Vec::new());
        let (mut port, mut pause): (Option<Port>, _) = (None, RETRY);
        while !stop.load(Ordering::Acquire) {
            self.restore();
            let Some(connected) = &mut port else {
                port = self.connect().ok();
                match &mut port {
                    Some(port) => port.set_timeout(Some(SILENCE)),
                    None => {
                        thread::sleep(pause);
                        pause = (pause + pause / 4).min(RETRY_LATER);
                    }
                }
                continue;
            };
            let next = wire::encode(&Query::Next { seqno: applied.0, report: &report });
            match call(connected, &next) {
                Ok(Some(Answer::Seqno(seqno))) if seqno > applied.0 => {
                    // Others may have been applied since, by whoever made them.
                    let before = applied.max(Seqno(self.applied.load(Ordering::Acquire)));
                    let change = PolicyUpdate { before, seqno: Seqno(seqno) };
                    let Some(said) = apply(change) else {
                        thread::sleep(RETRY);
                        continue;
                    };
                    (applied, report) = (change.seqno, said);
                    self.applied(applied);
                }
                Ok(Some(Answer::Unchanged)) => pause = RETRY,
                _ => {
                    port = None;
                    thread::sleep(RETRY);
                }
            }
        }
    }
}
