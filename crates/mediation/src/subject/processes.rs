//! The labels of the processes of a run, and what is known of those processes.

use super::mark::Mark;
use flask::{InitialSid, Sid};
use proc::ProcessTree;
use rustix::io::{Errno, Result};
use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};
use supervisor::{Notification, Targets};

/// The labels of the processes of a run.
#[derive(Debug)]
pub enum Processes {
    /// Policy knows one domain only: whoever comes through the gate is in it.
    One(Sid),
    /// Processes bear marks.
    Many(Box<Lineage>),
}

/// The labels of processes that can differ.
#[derive(Debug)]
pub struct Lineage {
    /// The domain of the command.
    pub(super) first: Sid,
    /// There is no other domain but those of runs inside.
    pub(super) has_one_domain: bool,
    /// No process has left the first domain, nor looks into another.
    pub alike: AtomicBool,
    /// A thread for whose call they could not be told apart.
    pub failed: AtomicU32,
    pub(super) known: Mutex<ProcessFacts>,
}

/// Who is told before a label changes.
pub type Tell = Box<dyn Fn() + Send + Sync>;

/// What is known of processes.
#[derive(Default)]
pub(super) struct ProcessFacts {
    /// Processes that others may be tracing, or whose memory they may read, and when they started.
    pub(super) watched: HashMap<u32, u64>,
    /// How often a process has entered a domain.
    pub(super) entries: u32,
    /// Processes in the middle of an exec that enters a domain: what they are belongs to it
    /// already, their label does not.
    pub(super) entering: HashSet<u32>,
    /// Traced processes that have executed a program unseen, before any domain was entered.
    pub(super) unseen: HashMap<u32, u64>,
    /// How many seccomp filters the command had when it was started.
    pub(super) filters: u32,
    pub(super) tell: Option<Tell>,
}

impl fmt::Debug for ProcessFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.watched.fmt(f)
    }
}

/// For how long a process has had its label: another process, and another domain, have another
/// generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelGeneration {
    /// When it started, in clock ticks since boot: together with the PID, that is who it is.
    pub started: u64,
    /// Which of the entries into a domain of this run gave it, or its ancestor, its label; 0 for
    /// the first domain.
    pub entered: u32,
}

impl Processes {
    /// For a run whose command is in the first of `domains`, and can reach the others. The command
    /// makes no calls yet.
    pub fn new(domains: &[Sid], command: u32, tree: &ProcessTree) -> Result<Self> {
        let first = domains.first().copied().unwrap_or(InitialSid::Init.into());
        let has_one_domain = domains.len() < 2;
        match (Mark { sid: first, entry: 0 }.put(command)) {
            Ok(()) => {}
            // No run can begin inside.
            Err(_) if has_one_domain => return Ok(Self::One(first)),
            Err(error) => return Err(error),
        }
        // A kernel that does not say is one on which a policy with several domains does not start.
        let filters = match tree.proc.status(command)?.filters() {
            None if !has_one_domain => return Err(Errno::SRCH),
            filters => filters.unwrap_or_default(),
        };
        let known = Mutex::new(ProcessFacts { filters, ..ProcessFacts::default() });
        let (alike, failed) = (AtomicBool::new(true), AtomicU32::default());
        Ok(Self::Many(Box::new(Lineage { first, has_one_domain, alike, failed, known })))
    }

    /// Whether there is one domain, and no other before
    /// [`begin_inside`](crate::tracking::begin_inside).
    pub fn cannot_differ_yet(&self) -> bool {
        match self {
            Self::One(_) => true,
            Self::Many(lineage) => lineage.has_one_domain && self.are_alike(),
        }
    }

    /// Whether no domain but those of runs inside can be entered.
    pub fn policy_has_one_domain(&self) -> bool {
        match self {
            Self::One(_) => true,
            Self::Many(lineage) => lineage.has_one_domain,
        }
    }

    /// What tells processes apart, where there can be several domains by now.
    pub(super) fn several(&self) -> Option<&Lineage> {
        match self {
            Self::Many(lineage) if !self.cannot_differ_yet() => Some(lineage),
            _ => None,
        }
    }

    /// Whether every process is in the first domain, and stays there until
    /// [`begin_tracking`](crate::tracking::begin_tracking).
    pub fn are_alike(&self) -> bool {
        match self {
            Self::One(_) => true,
            Self::Many(lineage) => lineage.alike.load(Ordering::Acquire),
        }
    }

    /// The label of the process that makes a call.
    pub fn sid(&self, targets: &Targets, call: &Notification) -> Result<Sid> {
        match self {
            Self::One(sid) => Ok(*sid),
            Self::Many(lineage) if self.are_alike() => Ok(lineage.first),
            Self::Many(_) => {
                let mark = Mark::of(&targets.tree, call.tid);
                // Only now is it known that this was about the caller, and not about another thread
                // with its number.
                if targets.listener.is_valid(call.id) { Ok(mark?.sid) } else { Err(Errno::SRCH) }
            }
        }
    }
}

impl Lineage {
    pub(super) fn known(&self) -> MutexGuard<'_, ProcessFacts> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessFacts {
    /// Gives a process another label, once whoever waits for that has been told.
    pub(super) fn give_label(&mut self, pid: u32, sid: Sid) -> Result<()> {
        if let Some(tell) = &self.tell {
            tell();
        }
        self.entries = self.entries.checked_add(1).ok_or(Errno::AGAIN)?;
        Mark { sid, entry: self.entries }.put(pid)
    }

    /// As long as this is held, no label changes.
    pub(super) fn label_generation(&self, tree: &ProcessTree, pid: u32) -> Result<LabelGeneration> {
        let started = tree.proc.started(pid)?;
        let entered = Mark::of(tree, pid)?.entry;
        // Else it was another process that had the number in between.
        let is_same = tree.proc.started(pid)? == started;
        if is_same { Ok(LabelGeneration { started, entered }) } else { Err(Errno::SRCH) }
    }
}
