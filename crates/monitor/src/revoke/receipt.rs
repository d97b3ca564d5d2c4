//! What became of a change of policy: who held what, and what was done about it.

use confine::OutOfReach;
use serde::{Deserialize, Serialize};
use std::{collections::HashSet, time::Duration};

/// How a process that holds a permission which was taken back is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RevokeMode {
    /// Its descriptors, mappings and connections are repaired under it, and it goes on. What cannot
    /// be repaired is killed.
    #[default]
    Repair,
    /// As before, and it is sent this signal.
    Signal(i32),
    /// It is killed.
    Kill,
    /// Every process of a domain that loses something is killed, whatever it holds.
    End,
}

impl RevokeMode {
    /// Whether processes may be killed for what cannot be taken from them otherwise.
    #[must_use]
    pub fn kills(self) -> bool {
        matches!(self, Self::Kill | Self::End)
    }
}

/// What was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Held {
    /// A file that is open at this number.
    Descriptor(i32),
    /// A mapping of a file: first address, and the one after its last.
    Mapping(u64, u64),
    /// A connected socket at this number.
    Connection(i32),
    /// A socket at this number, bound to a name that it may not have any more.
    Listener(i32),
    /// Descriptors in flight that the socket at this number would receive.
    InFlight(i32),
    /// A watch: number of the inotify descriptor, and of the watch.
    Watch(i32, i32),
    /// A system call under way.
    Call,
    /// What the kernel was told at the start that every process of the domain may do.
    Settled,
    /// What is not known, because the process could not be looked into.
    Unknown,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The number now means a descriptor that answers every read with `EACCES` and every write with
    /// `EBADF`.
    Replaced,
    /// The number now means the same file at the same place, opened for reading alone.
    Narrowed,
    /// An access to the memory raises `SIGBUS`.
    Unmapped,
    /// The connection is reset: `ECONNRESET`.
    Reset,
    /// The socket is shut down, and what it had received is thrown away.
    ShutDown,
    /// The watch is removed.
    Removed,
    /// The process is killed.
    Killed,
    /// It could not be taken back; the receipt is not complete.
    Kept,
}

/// One permission that was held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Process, in the monitor's PID namespace.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// What it held.
    pub held: Held,
    /// The object, as the kernel names it.
    pub object: String,
    /// The permissions on it that were taken back; empty where they cannot be told.
    pub lost: Vec<String>,
    /// What was done.
    pub action: Action,
    /// Why it was not done more gently; empty where there is nothing to say.
    pub reason: String,
    /// How long after the new policy was ready this was done.
    pub after: Duration,
}

/// What a change of policy came to in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The policy state that holds now.
    pub seqno: u32,
    /// No operation succeeds any more that the new policy does not grant.
    pub complete: bool,
    /// Processes that were looked into.
    pub processes: u32,
    /// Threads that were stopped for that.
    pub threads: u32,
    /// What it took to make the new policy ready for use, before anything changed.
    pub prepared: Duration,
    /// From then until all were stopped.
    pub stopped: Duration,
    /// From then until the change was complete.
    pub took: Duration,
    /// Who held what was taken back: as many as have room in 1 MiB.
    pub holders: Vec<Holder>,
    /// Further holders, who are only counted.
    #[serde(default)]
    pub more: u32,
    /// What the new policy gives and the view of the run keeps away: policy alone does not give it.
    #[serde(default)]
    pub out_of_reach: Vec<OutOfReach>,
}

impl Receipt {
    /// The memory that holders take, about: a program may hold whatever it has descriptors for, by
    /// paths of any length.
    const MOST_BYTES: usize = 1 << 20;

    /// All who held something.
    #[must_use]
    pub fn count(&self) -> usize {
        self.holders.len() + self.more as usize
    }

    /// Names no more holders than have room in so many bytes, first those from whom something was
    /// not taken. The others are only counted.
    pub fn name_at_most(&mut self, bytes: usize) {
        let of = |it: &Holder| 128 + it.object.len() + it.reason.len() + 16 * it.lost.len();
        if self.holders.iter().map(of).sum::<usize>() <= bytes {
            return;
        }
        self.holders.sort_by_key(|it| it.action != Action::Kept);
        let mut left = bytes;
        let has_room = |it: &Holder| {
            let rest = left.checked_sub(of(it));
            left = rest.unwrap_or(0);
            rest.is_some()
        };
        let named = self.holders.iter().map(has_room).take_while(|has_room| *has_room).count();
        self.more += (self.holders.len() - named) as u32;
        self.holders.truncate(named);
        self.holders.shrink_to_fit();
    }

    /// Names what a process held once (where threads cannot be asked whether they share their
    /// descriptors, each is looked into), and is not complete where something was kept.
    pub(super) fn conclude(&mut self) {
        let mut named = HashSet::new();
        self.holders.retain(|it| {
            // Of what is not a number of the process's, there can be several.
            let is_numbered = !matches!(it.held, Held::Call | Held::Settled | Held::Unknown);
            !is_numbered || named.insert((it.pid, it.held, it.action, it.object.clone()))
        });
        self.complete &= self.holders.iter().all(|it| it.action != Action::Kept);
        self.name_at_most(Self::MOST_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(pid: u32, held: Held) -> Holder {
        Holder {
            pid,
            comm: "holder".into(),
            held,
            object: "127.0.0.1:80".into(),
            lost: Vec::new(),
            action: Action::Killed,
            reason: String::new(),
            after: Duration::ZERO,
        }
    }

    #[test]
    fn a_receipt_is_short_and_names_first_what_was_kept() {
        let long = |fd| Holder { object: "x".repeat(4000), ..holder(1, Held::Descriptor(fd)) };
        let kept = Holder { action: Action::Kept, ..long(19_999) };
        let mut receipt = Receipt { complete: true, ..Receipt::default() };
        receipt.holders.extend((0..19_999).map(long).chain([kept.clone()]));
        receipt.conclude();
        assert!(!receipt.complete);
        assert_eq!((receipt.count(), &receipt.holders[0]), (20_000, &kept));
        assert!(
            receipt.holders.len() > 200 && serde_json::to_vec(&receipt).unwrap().len() < 2 << 20
        );
        receipt.name_at_most(10_000);
        assert_eq!((receipt.count(), receipt.holders.len()), (20_000, 2));
        let short = |fd| holder(1, Held::Descriptor(fd));
        let mut receipt = Receipt::default();
        receipt.holders.extend((0..4096).map(short));
        receipt.conclude();
        assert_eq!((receipt.holders.len(), receipt.more), (4096, 0));
    }

    #[test]
    fn what_each_thread_of_a_process_shows_is_named_once() {
        let mut receipt = Receipt::default();
        let seven = Held::Connection(7);
        for (pid, held) in [(1, seven), (1, seven), (2, seven), (1, Held::Connection(8))] {
            receipt.holders.push(holder(pid, held));
        }
        receipt.conclude();
        let named: Vec<_> = receipt.holders.iter().map(|it| (it.pid, it.held)).collect();
        assert_eq!(named, [(1, seven), (2, seven), (1, Held::Connection(8))]);
    }
}
