//! A change of policy as JSON: what `revoke`, `grant`, `policy load` and `policy history` print.

use crate::{
    control::{ChangeResult, PolicyChange},
    run::document::moment,
};
use monitor::{Action, Held, Holder, Receipt};
use serde::Serialize;

/// The version of [`ChangedDocument`].
const SCHEMA: &str = "dewar/change/1";

/// A change of the policy of a run, and what came of it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ChangedDocument {
    /// Which document this is, and in which version.
    schema: &'static str,
    at: String,
    /// As a command.
    what: String,
    /// `complete`, `incomplete`, `out of reach` (policy gives it, and the run's view keeps it
    /// away), or `failed`.
    outcome: &'static str,
    /// Why nothing was changed.
    why: Option<String>,
    /// What was done, where something was changed.
    receipt: Option<ReceiptDocument>,
}

/// What a change came to in the run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ReceiptDocument {
    /// The policy state that holds now.
    seqno: u32,
    /// No operation succeeds any more that the new policy does not grant.
    complete: bool,
    /// Processes that were looked into.
    processes: u32,
    /// Threads that were stopped for that.
    threads: u32,
    /// What it took to make the new policy ready for use, before anything changed.
    prepared_seconds: f64,
    /// From then until all were stopped.
    stopped_seconds: f64,
    /// From then until the change was complete.
    took_seconds: f64,
    /// Who held what was taken back: as many as have room in 1 MiB, in a list of changes in 8 KiB.
    holders: Vec<HolderDocument>,
    /// Further holders, who are only counted.
    more: u32,
    /// What the new policy gives and the view of the run keeps away.
    out_of_reach: Vec<OutOfReachDocument>,
}

/// One permission that was held.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HolderDocument {
    pid: u32,
    /// Name of the process.
    comm: String,
    held: HeldDocument,
    /// The object, as the kernel names it.
    object: String,
    /// The permissions on it that were taken back; empty where they cannot be told.
    lost: Vec<String>,
    /// `replaced`, `unmapped`, `reset`, `shut down`, `removed`, `killed` or `kept`.
    done: &'static str,
    /// Why it was not done more gently; empty where there is nothing to say.
    reason: String,
    /// How long after the new policy was ready this was done.
    after_seconds: f64,
}

/// What was held.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum HeldDocument {
    /// The number of an open file.
    Descriptor(i32),
    /// A mapping of a file: first address, and the one after its last.
    Mapping(u64, u64),
    /// The number of a connected socket.
    Connection(i32),
    /// The number of a socket bound to a name that it may not have any more.
    Listener(i32),
    /// The number of the socket that would receive descriptors in flight.
    InFlight(i32),
    /// The number of the inotify descriptor, and of the watch.
    Watch(i32, i32),
    /// A system call under way.
    Call,
    /// What the kernel was told at the start of the run.
    Settled,
    /// The process could not be looked into.
    Unknown,
}

/// What policy gives in vain.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OutOfReachDocument {
    path: String,
    /// What keeps it away.
    why: String,
}

impl ChangedDocument {
    /// Of a change.
    pub(crate) fn of(change: &PolicyChange) -> Self {
        let (outcome, why, receipt) = match &change.outcome {
            ChangeResult::Failed(why) => ("failed", Some(why.clone()), None),
            ChangeResult::Receipt(receipt) => {
                (outcome(receipt), None, Some(self::receipt(receipt)))
            }
        };
        let (at, what) = (moment(change.when), change.what.clone());
        Self { schema: SCHEMA, at, what, outcome, why, receipt }
    }
}

fn outcome(receipt: &Receipt) -> &'static str {
    match (receipt.complete, receipt.out_of_reach.is_empty()) {
        (true, true) => "complete",
        (true, false) => "out of reach",
        (false, _) => "incomplete",
    }
}

fn receipt(of: &Receipt) -> ReceiptDocument {
    let out_of_reach = of.out_of_reach.iter();
    ReceiptDocument {
        seqno: of.seqno,
        complete: of.complete,
        processes: of.processes,
        threads: of.threads,
        prepared_seconds: of.prepared.as_secs_f64(),
        stopped_seconds: of.stopped.as_secs_f64(),
        took_seconds: of.took.as_secs_f64(),
        holders: of.holders.iter().map(holder).collect(),
        more: of.more,
        out_of_reach: out_of_reach
            .map(|it| OutOfReachDocument { path: it.path.clone(), why: it.why.clone() })
            .collect(),
    }
}

fn holder(of: &Holder) -> HolderDocument {
    HolderDocument {
        pid: of.pid,
        comm: of.comm.clone(),
        held: held(of.held),
        object: of.object.clone(),
        lost: of.lost.clone(),
        done: done(of.action),
        reason: of.reason.clone(),
        after_seconds: of.after.as_secs_f64(),
    }
}

fn held(of: Held) -> HeldDocument {
    match of {
        Held::Descriptor(number) => HeldDocument::Descriptor(number),
        Held::Mapping(from, to) => HeldDocument::Mapping(from, to),
        Held::Connection(number) => HeldDocument::Connection(number),
        Held::Listener(number) => HeldDocument::Listener(number),
        Held::InFlight(number) => HeldDocument::InFlight(number),
        Held::Watch(inotify, watch) => HeldDocument::Watch(inotify, watch),
        Held::Call => HeldDocument::Call,
        Held::Settled => HeldDocument::Settled,
        Held::Unknown => HeldDocument::Unknown,
    }
}

/// What was done, in a word.
fn done(action: Action) -> &'static str {
    match action {
        Action::Replaced => "replaced",
        Action::Narrowed => "narrowed",
        Action::Unmapped => "unmapped",
        Action::Reset => "reset",
        Action::ShutDown => "shut down",
        Action::Removed => "removed",
        Action::Killed => "killed",
        Action::Kept => "kept",
    }
}
