//! A case: one attack, what it would cost, and who says whether it happened.

use crate::{scene::Scene, stage::Stage};
use serde::Serialize;
use std::io;

/// How bad it is when a case gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something is learned or disturbed.
    Low,
    /// Another wall stands behind it, or it needs luck.
    Medium,
    /// Secrets are read, or data leaves.
    High,
    /// Commands run outside.
    Critical,
}

impl Severity {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// One attack.
pub struct Case {
    /// What it is called on the command line.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What code in the sandbox does if it gets through: one sentence.
    pub claim: &'static str,
    /// Where it is known from: a CVE, a manual page, a file of the kernel.
    pub source: &'static str,
    /// Lays out what the attack aims at; says who judges.
    pub(crate) outside: fn(&mut Stage) -> io::Result<Judge>,
    /// Runs inside.
    pub(crate) attack: fn(&Scene) -> io::Result<()>,
}

/// Whether an attack happened, from outside: `Some` says what.
pub(crate) struct Judge {
    /// Looks while the attack holds what it has got.
    pub(crate) during: Option<Look>,
    /// Looks when the run has ended.
    pub(crate) after: Option<After>,
}

/// Looks at the processes of a run.
pub(crate) type Look = Box<dyn Fn(&[Process]) -> Option<String>>;
/// Looks at what a run has left.
pub(crate) type After = Box<dyn FnMut(&Ran) -> Option<String>>;

impl Judge {
    pub(crate) fn after(look: impl FnMut(&Ran) -> Option<String> + 'static) -> Self {
        Self { during: None, after: Some(Box::new(look)) }
    }

    pub(crate) fn during(look: impl Fn(&[Process]) -> Option<String> + 'static) -> Self {
        Self { during: Some(Box::new(look)), after: None }
    }
}

/// A process of a run, as it is seen from outside.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// What it executes, as `/proc` says.
    pub(crate) exe: String,
    /// It executes the attack program.
    pub(crate) is_attack: bool,
}

/// What a run came to.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) status: Option<i32>,
    /// What was seen while the attack held.
    pub(crate) seen: Option<String>,
    /// The attack program has started.
    pub(crate) started: bool,
    /// It was ended because it took too long.
    pub(crate) late: bool,
    /// Processes of the run that were there after its end.
    pub(crate) left: Vec<Process>,
}
