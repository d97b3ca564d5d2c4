//! The audit record of a decision, as it is written and read.

use serde::{Deserialize, Serialize};

/// One decision, for people and programs: a line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Seconds since 1970; the last time, where there were several.
    pub time: f64,
    /// Whether the operation passed.
    pub granted: bool,
    /// Process, in the monitor's PID namespace.
    pub pid: u32,
    /// Name of the process, as its first thread is called.
    pub comm: String,
    /// The program that it runs.
    pub program: String,
    /// The system call.
    pub call: String,
    /// The object, as the program or the kernel names it.
    pub object: String,
    /// Security context of the subject.
    pub scontext: String,
    /// Security context of the object.
    pub tcontext: String,
    /// Class of the object.
    pub tclass: String,
    /// What was asked for.
    pub requested: Vec<String>,
    /// What of it the policy does not grant.
    pub missing: Vec<String>,
    /// Where the decision was found: `hint`, `cache`, `server`; empty when there was no answer.
    pub source: String,
    /// The policy state that it follows from.
    pub seqno: u32,
    /// For a denial: the rules that bear on it.
    pub rules: Vec<String>,
    /// For a denial: why.
    pub reason: String,
    /// For a denial: the rule that would allow it.
    pub would_allow: Option<String>,
    /// Which part of Dewar refuses it whatever policy says; empty where policy decided.
    pub refused_by: String,
    /// What leads to the same end, where policy has no say.
    pub instead: String,
    /// Programs probe for it, and do without.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub probed: bool,
    /// The permissions of the file system refuse it to this user without Dewar, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub natively: bool,
    /// How often the same was denied in this run; 1 in a stream.
    pub count: u64,
    /// Its number among the kinds of denials of this run, from 1, which no other kind ever has; 0
    /// in a stream, and in what was recorded before there were numbers.
    #[serde(skip_serializing_if = "is_zero")]
    pub number: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
