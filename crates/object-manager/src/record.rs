//! What is put on record, as the program's callback and `dewar audit` read it.

use crate::{Denied, Explanation, Peer, Source, Verdict};
use serde::Serialize;
use std::{
    borrow::Cow,
    fmt, fs,
    time::{SystemTime, UNIX_EPOCH},
};

/// What a check is about, for the record: made only when there is one.
#[derive(Clone, Debug, Default)]
pub struct About<'a> {
    object: Cow<'a, str>,
    operation: Cow<'a, str>,
    pid: Option<u32>,
}

impl<'a> About<'a> {
    /// That object, as people know it.
    pub fn object(name: impl Into<Cow<'a, str>>) -> Self {
        Self { object: name.into(), ..Self::default() }
    }

    /// What is done with it: the request, the method.
    #[must_use]
    pub fn operation(self, name: impl Into<Cow<'a, str>>) -> Self {
        Self { operation: name.into(), ..self }
    }

    /// By whom.
    #[must_use]
    pub fn by(self, peer: &Peer) -> Self {
        self.by_process(peer.pid())
    }

    /// By the process of that number; without it, by this one.
    #[must_use]
    pub fn by_process(self, pid: u32) -> Self {
        Self { pid: Some(pid), ..self }
    }
}

/// A decision that policy wants on record: the same fields as the records of `dewar run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Record {
    /// Seconds since 1970.
    pub time: f64,
    /// Whether the operation passed.
    pub granted: bool,
    /// The process that asked.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// The program that it runs; empty if this process may not see it.
    pub program: String,
    /// What it asked for.
    pub call: String,
    /// The object, as the program names it.
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
    pub source: &'static str,
    /// The policy state that it follows from.
    pub seqno: u32,
    /// For a denial: the rules that bear on it.
    pub rules: Vec<String>,
    /// For a denial: why.
    pub reason: String,
    /// For a denial: the rule that would allow it.
    pub would_allow: Option<String>,
    /// Always 1.
    pub count: u64,
}

impl Record {
    /// The record as a line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Strings and numbers: that cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What is known without looking at the process: `denied` has the names.
    pub(crate) fn of(
        denied: &Denied,
        requested: Vec<String>,
        verdict: Option<Verdict>,
        explained: Explanation,
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            time: now.as_secs_f64(),
            scontext: denied.scontext.clone(),
            tcontext: denied.tcontext.clone(),
            tclass: denied.tclass.clone(),
            requested,
            missing: denied.missing.clone(),
            source: match verdict.map(|verdict| verdict.source) {
                Some(Source::Hint) => "hint",
                Some(Source::Cache) => "cache",
                Some(Source::Server) => "server",
                None => "",
            },
            seqno: verdict.map_or(0, |verdict| verdict.seqno.0),
            rules: explained.rules,
            reason: explained.reason,
            would_allow: explained.would_allow,
            count: 1,
            ..Self::default()
        }
    }

    pub(crate) fn with(self, about: About<'_>) -> Self {
        let pid = about.pid.unwrap_or_else(std::process::id);
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        Self {
            pid,
            comm: comm.trim_end().to_owned(),
            program: program.to_string_lossy().into_owned(),
            call: about.operation.into_owned(),
            object: about.object.into_owned(),
            ..self
        }
    }
}

impl fmt::Display for Record {
    /// As the kernel's AVC message, with what would allow it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verdict, what) = match self.granted {
            true => ("granted", &self.requested),
            false => ("denied", &self.missing),
        };
        write!(
            f,
            "avc: {verdict} {{ {} }} for pid={} comm=\"{}\" object=\"{}\" scontext={} tcontext={} tclass={}",
            what.join(" "),
            self.pid,
            flask::visible(&self.comm),
            flask::visible(&self.object),
            self.scontext,
            self.tcontext,
            self.tclass,
        )?;
        match &self.would_allow {
            Some(rule) => write!(f, ": {} would allow it", flask::visible(rule)),
            None => Ok(()),
        }
    }
}
